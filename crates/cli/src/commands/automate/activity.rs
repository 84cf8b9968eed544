//! Prints what happens with runs and deliveries, as seen in the store.

use std::collections::HashMap;
use std::io::Write as _;

use jiff::Timestamp;
use lango_app::capability::automation::delivery::DeliveryTarget;
use lango_app::capability::automation::time_text::format_span;
use lango_domain::automation::{
    Delivery, DeliveryId, DeliveryQuery, DeliveryState, Run, RunId, RunQuery, RunState,
};
use lango_domain::event::Principal;
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Value, json};

use crate::commands::automation::{AutomationView, run_reason};
use crate::output::{CliError, DIM, NAME, OutputFormat, styled};

/// The newest rows that are looked at. More than this in one second is summed up by the history.
const WATCHED_ROWS: usize = 200;

/// The last known states of runs and deliveries.
pub struct ActivityWatch {
    principals: Vec<Principal>,
    runs: HashMap<RunId, (RunState, u32)>,
    deliveries: HashMap<DeliveryId, (DeliveryState, u32)>,
}

/// A change to print.
struct ActivityLine {
    plain: String,
    json: Value,
}

impl ActivityWatch {
    /// Starts with everything as it is now.
    pub async fn start(view: &AutomationView) -> Result<Self, CliError> {
        let mut principals = view.stores.catalog.principals().await?;
        if !principals.contains(&view.principal) {
            principals.push(view.principal.clone());
        }
        let mut watch = Self {
            principals,
            runs: HashMap::new(),
            deliveries: HashMap::new(),
        };
        watch.changes(view).await?;
        Ok(watch)
    }

    pub async fn print_changes(&mut self, view: &AutomationView, format: OutputFormat) {
        let lines = match self.changes(view).await {
            Ok(lines) => lines,
            Err(error) => {
                error.print(format);
                return;
            }
        };
        let mut stdout = anstream::stdout();
        for line in lines {
            // A closed pipe must not stop the scheduler.
            let _ = match format {
                OutputFormat::Plain => writeln!(stdout, "{}", line.plain),
                OutputFormat::Json => writeln!(stdout, "{}", line.json),
            };
        }
        let _ = stdout.flush();
    }

    /// Takes note of changes that another process prints.
    pub async fn skip_changes(&mut self, view: &AutomationView) {
        let _ = self.changes(view).await;
    }

    async fn changes(&mut self, view: &AutomationView) -> Result<Vec<ActivityLine>, CliError> {
        let mut lines = Vec::new();
        for principal in self.principals.clone() {
            let query = RunQuery::newest(principal.clone(), WATCHED_ROWS);
            let mut runs = view.store().runs(query).await?;
            // Those that wait may be older than the newest ones.
            let open = RunQuery {
                states: vec![RunState::Queued, RunState::Running, RunState::Waiting],
                ..RunQuery::newest(principal.clone(), WATCHED_ROWS)
            };
            runs.extend(view.store().runs(open).await?);
            runs.sort_by_key(|run| run.id);
            runs.dedup_by_key(|run| run.id);
            for run in &runs {
                let now = (run.state, run.attempt);
                if self.runs.insert(run.id, now) != Some(now) {
                    lines.extend(run_line(view, run));
                }
            }
            let query = DeliveryQuery {
                principal,
                run: None,
                state: None,
                limit: WATCHED_ROWS,
            };
            let deliveries = view.store().deliveries(query).await?;
            for delivery in deliveries.iter().rev() {
                let now = (delivery.state, delivery.attempts);
                if self.deliveries.insert(delivery.id, now) != Some(now) {
                    lines.extend(delivery_line(view, delivery));
                }
            }
        }
        Ok(lines)
    }
}

fn run_line(view: &AutomationView, run: &Run) -> Option<ActivityLine> {
    let detail = match run.state {
        RunState::Queued => return None,
        RunState::Running => match run.attempt {
            0 | 1 => "started".to_owned(),
            attempt => format!("started again (attempt {attempt})"),
        },
        state => {
            let took = run.started.zip(run.ended);
            let took = took
                .map(|(start, end)| format!(" after {}", format_span(end.duration_since(start))));
            let text = run_reason(run)
                .or(run.result.as_deref())
                .unwrap_or_default();
            let text = match truncated_line(text, 200) {
                text if text.is_empty() => text,
                text => format!(": {text}"),
            };
            format!("{state}{}{text}", took.unwrap_or_default())
        }
    };
    let name = styled(NAME, truncated_line(&run.name, 60));
    Some(ActivityLine {
        plain: format!("{}  {name} (run {}) {detail}", clock(view), run.id),
        json: json!({
            "type": "run", "at": Timestamp::now(), "run": run.id.to_string(), "name": run.name, "kind": run.kind,
            "state": run.state, "attempt": run.attempt, "due": run.due, "reason": run_reason(run),
        }),
    })
}

fn delivery_line(view: &AutomationView, delivery: &Delivery) -> Option<ActivityLine> {
    let outcome = match (delivery.state, delivery.attempts) {
        (DeliveryState::Pending, 0) => return None,
        (DeliveryState::Pending, _) if delivery.last_error.is_none() => return None,
        (DeliveryState::Pending, attempts) => format!("failed {attempts} times and is tried again"),
        (state, _) => state.to_string(),
    };
    let error = delivery
        .last_error
        .as_deref()
        .filter(|_| delivery.state != DeliveryState::Delivered);
    let reason = error.map(|error| format!(": {}", truncated_line(error, 200)));
    let title = truncated_line(&delivery.message.title, 60);
    let target = target_summary(&delivery.target);
    Some(ActivityLine {
        plain: format!(
            "{}  {} to {target}: {outcome}{}",
            clock(view),
            styled(NAME, title),
            reason.unwrap_or_default()
        ),
        json: json!({
            "type": "delivery", "at": Timestamp::now(), "delivery": delivery.id,
            "run": delivery.run.map(|run| run.to_string()), "target": target,
            "state": delivery.state, "attempts": delivery.attempts, "error": delivery.last_error,
        }),
    })
}

/// Names a target. The path of a URL is often a secret, and this may go to a log.
fn target_summary(target: &str) -> String {
    match target.parse::<DeliveryTarget>() {
        Ok(target) => one_line(&target.summary()),
        Err(_) => truncated_line(target, 80),
    }
}

fn clock(view: &AutomationView) -> String {
    let now = Timestamp::now().to_zoned(view.times.zone.clone());
    styled(DIM, now.strftime("%H:%M:%S"))
}
