//! Metrics in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use lango_runtime::TurnMeter;
use tokio::time::Instant;

use crate::gateway::Gateway;

/// Upper bounds of the turn duration histogram in seconds.
const TURN_SECONDS_BUCKETS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

#[derive(Default)]
pub(crate) struct Metrics {
    /// Request counts by route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// Turn counts by outcome.
    turns: Mutex<BTreeMap<String, u64>>,
    turn_times: [AtomicU64; TURN_SECONDS_BUCKETS.len()],
    turn_count: AtomicU64,
    turn_microseconds: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    pub connections: AtomicUsize,
}

impl Metrics {
    pub fn record_turn(&self, meter: &TurnMeter) {
        let duration = meter.started.elapsed();
        let end = meter.end.clone().unwrap_or_else(|| "parked".to_owned());
        *self
            .turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(end)
            .or_default() += 1;
        for (bound, count) in TURN_SECONDS_BUCKETS.iter().zip(&self.turn_times) {
            if duration.as_secs_f64() <= *bound {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.turn_count.fetch_add(1, Ordering::Relaxed);
        self.turn_microseconds
            .fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
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

/// Returns all metrics in the Prometheus text format.
pub(crate) fn render(gateway: &Gateway) -> String {
    let metrics = gateway.metrics();
    let mut text = String::new();
    render_requests(&mut text, metrics);
    render_turns(&mut text, metrics);
    render_turn_times(&mut text, metrics);
    render_tokens(&mut text, metrics);
    let gauges = [
        (
            "lango_turns_running",
            "Running turns.",
            gateway.runtime().turns_running(),
        ),
        (
            "lango_approvals_waiting",
            "Approval questions that wait for an answer.",
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

fn render_requests(text: &mut String, metrics: &Metrics) {
    let name = "lango_requests_total";
    render_header(text, name, "counter", "Requests by route and status.");
    let requests = metrics
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for ((route, status), count) in requests.iter() {
        let labels = format!("route=\"{route}\",status=\"{status}\"");
        let _ = writeln!(text, "{name}{{{labels}}} {count}");
    }
}

fn render_turns(text: &mut String, metrics: &Metrics) {
    let name = "lango_turns_total";
    render_header(text, name, "counter", "Finished turns by outcome.");
    let turns = metrics.turns.lock().unwrap_or_else(PoisonError::into_inner);
    for (end, count) in turns.iter() {
        let _ = writeln!(text, "{name}{{end=\"{end}\"}} {count}");
    }
}

fn render_tokens(text: &mut String, metrics: &Metrics) {
    let name = "lango_tokens_total";
    render_header(text, name, "counter", "Model tokens by direction.");
    for (direction, count) in [("in", &metrics.tokens_in), ("out", &metrics.tokens_out)] {
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(text, "{name}{{direction=\"{direction}\"}} {count}");
    }
}

fn render_turn_times(text: &mut String, metrics: &Metrics) {
    render_header(
        text,
        "lango_turn_seconds",
        "histogram",
        "Turn duration in seconds.",
    );
    let total = metrics.turn_count.load(Ordering::Relaxed);
    for (bound, count) in TURN_SECONDS_BUCKETS.iter().zip(&metrics.turn_times) {
        let _ = writeln!(
            text,
            "lango_turn_seconds_bucket{{le=\"{bound}\"}} {}",
            count.load(Ordering::Relaxed)
        );
    }
    let sum =
        Duration::from_micros(metrics.turn_microseconds.load(Ordering::Relaxed)).as_secs_f64();
    let _ = writeln!(text, "lango_turn_seconds_bucket{{le=\"+Inf\"}} {total}");
    let _ = writeln!(
        text,
        "lango_turn_seconds_sum {sum}\nlango_turn_seconds_count {total}"
    );
}

fn render_header(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Counts and logs every request. Headers and bodies are never logged.
pub(crate) async fn record_request(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let started = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let status = response.status().as_u16();
    gateway.metrics().count_request(route, status);
    tracing::info!(%method, route, status, milliseconds = started.elapsed().as_millis() as u64, "request");
    response
}
