//! What the server counts, in the form that Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use lango_domain::event::{EventBody, Update};
use tokio::time::Instant;

use crate::gateway::Gateway;

/// Upper ends of the times that turns are sorted into, in seconds.
const TURN_SECONDS_BUCKETS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

#[derive(Default)]
pub(crate) struct Metrics {
    /// By route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// By how they ended.
    turns: Mutex<BTreeMap<String, u64>>,
    turn_times: [AtomicU64; TURN_SECONDS_BUCKETS.len()],
    turn_count: AtomicU64,
    turn_microseconds: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    pub connections: AtomicUsize,
}

/// What is seen of one turn.
pub(crate) struct TurnMeter {
    started: Instant,
    tokens_in: u64,
    tokens_out: u64,
    end: Option<String>,
}

impl Default for TurnMeter {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            tokens_in: 0,
            tokens_out: 0,
            end: None,
        }
    }
}

impl TurnMeter {
    pub fn observe(&mut self, update: &Update) {
        match update {
            Update::Event(event) => match &event.body {
                EventBody::Usage(usage) => {
                    self.tokens_in = self.tokens_in.saturating_add(usage.input);
                    self.tokens_out = self.tokens_out.saturating_add(usage.output);
                }
                EventBody::TurnDone => self.end = Some("done".to_owned()),
                EventBody::TurnFailed { code, .. } => self.end = Some(code.to_string()),
                _ => {}
            },
            Update::StoreFailed(_) => self.end = Some("broken".to_owned()),
            Update::Delta { .. } | Update::ToolOutputDelta { .. } => {}
        }
    }
}

impl Metrics {
    pub fn record_turn(&self, meter: TurnMeter) {
        let took = meter.started.elapsed();
        let end = meter.end.unwrap_or_else(|| "parked".to_owned());
        *self
            .turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(end)
            .or_default() += 1;
        for (most, count) in TURN_SECONDS_BUCKETS.iter().zip(&self.turn_times) {
            if took.as_secs_f64() <= *most {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.turn_count.fetch_add(1, Ordering::Relaxed);
        self.turn_microseconds
            .fetch_add(took.as_micros() as u64, Ordering::Relaxed);
        self.tokens_in.fetch_add(meter.tokens_in, Ordering::Relaxed);
        self.tokens_out
            .fetch_add(meter.tokens_out, Ordering::Relaxed);
    }

    fn count_request(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        match requests.get_mut(&(route.to_owned(), status)) {
            Some(count) => *count += 1,
            None => _ = requests.insert((route.to_owned(), status), 1),
        }
    }
}

/// Everything that is counted.
pub(crate) fn render(gateway: &Gateway) -> String {
    let metrics = gateway.metrics();
    let mut text = String::new();
    render_header(
        &mut text,
        "lango_requests_total",
        "counter",
        "Requests, by route and status.",
    );
    for ((route, status), count) in metrics
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        let _ = writeln!(
            text,
            "lango_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}"
        );
    }
    render_header(
        &mut text,
        "lango_turns_total",
        "counter",
        "Turns that ended, by how.",
    );
    for (end, count) in metrics
        .turns
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        let _ = writeln!(text, "lango_turns_total{{end=\"{end}\"}} {count}");
    }
    render_turn_times(&mut text, metrics);
    render_header(
        &mut text,
        "lango_tokens_total",
        "counter",
        "Tokens that models read and wrote.",
    );
    for (direction, count) in [("in", &metrics.tokens_in), ("out", &metrics.tokens_out)] {
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "lango_tokens_total{{direction=\"{direction}\"}} {count}"
        );
    }
    let gauges = [
        (
            "lango_turns_running",
            "Turns that run at this moment.",
            gateway.rate_limiter().turns_running(),
        ),
        (
            "lango_approvals_waiting",
            "Questions that wait for an answer.",
            gateway.client_bridge().pending_count(),
        ),
        (
            "lango_connections",
            "Open connections.",
            metrics.connections.load(Ordering::Relaxed),
        ),
    ];
    for (name, help, value) in gauges {
        render_header(&mut text, name, "gauge", help);
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

fn render_turn_times(text: &mut String, metrics: &Metrics) {
    render_header(
        text,
        "lango_turn_seconds",
        "histogram",
        "How long turns took.",
    );
    let all = metrics.turn_count.load(Ordering::Relaxed);
    for (most, count) in TURN_SECONDS_BUCKETS.iter().zip(&metrics.turn_times) {
        let _ = writeln!(
            text,
            "lango_turn_seconds_bucket{{le=\"{most}\"}} {}",
            count.load(Ordering::Relaxed)
        );
    }
    let sum =
        Duration::from_micros(metrics.turn_microseconds.load(Ordering::Relaxed)).as_secs_f64();
    let _ = writeln!(text, "lango_turn_seconds_bucket{{le=\"+Inf\"}} {all}");
    let _ = writeln!(
        text,
        "lango_turn_seconds_sum {sum}\nlango_turn_seconds_count {all}"
    );
}

fn render_header(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Counts every request and says so in the log; headers and bodies are nobody's business there.
pub(crate) async fn record_request(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let status = response.status().as_u16();
    gateway.metrics().count_request(route, status);
    tracing::info!(%method, route, status, milliseconds = began.elapsed().as_millis() as u64, "answered");
    response
}
