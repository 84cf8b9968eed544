//! The texts of answers.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use lango_domain::automation::{
    DeliveryState, Job, Run, RunKind, RunSpec, RunState, RunStep, StepDecision, StepState,
};
use lango_domain::{Label, LabeledText, ToolOutput};
use lango_text::sanitize::{strip_control_chars, truncated_line};

use crate::delivery::DeliveryTarget;
use crate::planning::{describe_action, describe_schedule};
use crate::time_text::{absolute_time, describe_time, format_span, in_zone};

/// The part of a result that lists show.
const MAX_EXCERPT_CHARS: usize = 300;

/// Text with the label of everything in it.
#[derive(Default)]
pub(super) struct LabeledLines {
    pub text: String,
    pub label: Label,
}

impl LabeledLines {
    pub fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Returns the output. Text without anything of others is Lango's own.
    pub fn output(self) -> ToolOutput {
        ToolOutput::from_labeled(LabeledText {
            text: self.text.trim_end().to_owned(),
            label: self.label,
        })
    }
}

/// Lists the next occurrences.
pub(super) fn next_lines(next: &[Zoned], now: Timestamp) -> String {
    let mut text = String::new();
    for (number, at) in next.iter().enumerate() {
        let _ = match number {
            0 => writeln!(text, "Next: {}.", describe_time(at, now)),
            _ => writeln!(text, "Then: {}.", absolute_time(at)),
        };
    }
    text
}

/// Names the targets of results, and what runs without asking.
pub(super) fn terms_lines(spec: &RunSpec) -> String {
    let mut text = format!("Results go to: {}.\n", target_names(&spec.deliver_to));
    if !spec.failure_deliver_to.is_empty() {
        let _ = writeln!(
            text,
            "Failures go to: {}.",
            target_names(&spec.failure_deliver_to)
        );
    }
    if let Some(allowed) = allowed(spec) {
        let _ = writeln!(text, "Without asking: {allowed}.");
    }
    text
}

fn allowed(spec: &RunSpec) -> Option<String> {
    let allowed = spec.permissions();
    let quoted: Vec<String> = allowed.iter().map(|text| format!("`{text}`")).collect();
    (!quoted.is_empty()).then(|| quoted.join(", "))
}

pub(super) fn target_names(targets: &[String]) -> String {
    let name = |target: &String| match target.parse::<DeliveryTarget>() {
        Ok(target) => target.summary(),
        Err(_) => truncated_line(target, 80),
    };
    let names: Vec<String> = targets.iter().map(name).collect();
    names.join(", ")
}

/// Describes a job in a few lines, with its permissions.
pub(super) fn job_lines(job: &Job, last: Option<&Run>, now: Timestamp) -> String {
    let next = match (job.next_due, job.enabled) {
        (_, false) => "paused".to_owned(),
        (None, true) => "over".to_owned(),
        (Some(at), true) => {
            let at = in_zone(at, &job.schedule.time_zone);
            format!("next {}", describe_time(&at, now))
        }
    };
    let mut text = format!("- {} (#{}): {next}\n", job.name, job.id);
    let _ = writeln!(
        text,
        "  {}; {}",
        describe_schedule(&job.schedule),
        describe_action(&job.spec.action)
    );
    let _ = write!(text, "  results: {}", target_names(&job.spec.deliver_to));
    if let Some(allowed) = allowed(&job.spec) {
        let _ = write!(text, "; without asking: {allowed}");
    }
    text.push('\n');
    if let Some(run) = last {
        let at = in_zone(run.due, &job.schedule.time_zone);
        let reason = run.reason.as_deref().map(|reason| format!(" ({reason})"));
        let _ = writeln!(
            text,
            "  last run: {}, due {}{}",
            run.state,
            describe_time(&at, now),
            reason.unwrap_or_default()
        );
    }
    text
}

/// Describes a run in a few lines. Long results are cut.
pub(super) fn run_lines(run: &Run, zone: &TimeZone, now: Timestamp) -> String {
    let due = run.due.to_zoned(zone.clone());
    let kind = match run.kind {
        RunKind::Job => "run",
        RunKind::Background => "task",
        RunKind::Workflow => "workflow run",
    };
    let mut text = format!(
        "- {kind} {} ({}): {}, due {}",
        run.id,
        truncated_line(&run.name, 60),
        run.state,
        describe_time(&due, now)
    );
    if let (Some(started), Some(ended)) = (run.started, run.ended) {
        let _ = write!(
            text,
            ", took {}",
            format_span(ended.duration_since(started))
        );
    }
    text.push('\n');
    let mut detail = |name: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            let value = truncated_line(value, MAX_EXCERPT_CHARS);
            let _ = writeln!(text, "  {name}: {value}");
        }
    };
    detail("why", run.reason.as_deref());
    detail("result", run.result.as_deref());
    detail("error", run.error.as_deref());
    match run.delivery {
        Some(DeliveryState::Pending) => detail("delivery", Some("still being tried")),
        Some(DeliveryState::Failed) => detail("delivery", Some("failed; see the inbox")),
        Some(DeliveryState::Delivered) | None => {}
    }
    if run.is_cancel_requested && !run.state.is_final() {
        detail("note", Some("it is being stopped"));
    }
    text
}

/// Returns the whole result of a run, or says why there is none.
pub(super) fn result_text(run: &Run) -> String {
    let result = run.result.as_deref().unwrap_or_default().trim();
    let text = match (run.state, run.error.as_deref()) {
        (RunState::Done, _) if result.is_empty() => "It is done and has no text.".to_owned(),
        (RunState::Done, _) => result.to_owned(),
        (state, error) => {
            let mut text = match state.is_final() {
                true => format!("It is {state}."),
                false => format!("There is no result yet: it is {state}."),
            };
            let reason = error.or(run.reason.as_deref());
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                let _ = write!(text, " {}", reason.trim());
            }
            if !result.is_empty() {
                let _ = write!(text, "\nIts result so far:\n{result}");
            }
            text
        }
    };
    strip_control_chars(&text)
}

/// Describes a step of a workflow on one line, and what it waits for.
pub(super) fn step_line(step: &RunStep) -> String {
    let mut text = format!("  {}: {}", step.step, step.state.as_str());
    if step.attempt > 1 {
        let _ = write!(text, ", attempt {}", step.attempt);
    }
    if step.is_repeated && step.attempt > 0 {
        text.push_str(", repeated although an earlier attempt may have had its effect");
    }
    if let Some(reason) = &step.reason {
        let _ = write!(text, " ({})", truncated_line(reason, MAX_EXCERPT_CHARS));
    }
    let shown = match step.state {
        StepState::Failed => step.error.as_deref(),
        _ => step.result.as_deref(),
    };
    if let Some(shown) = shown.filter(|shown| !shown.trim().is_empty()) {
        let _ = write!(text, ": {}", truncated_line(shown, MAX_EXCERPT_CHARS));
    }
    match (step.state, step.decision) {
        (_, Some(decision)) => {
            let _ = write!(text, "; answered: {}", decision.as_str());
        }
        (StepState::Waiting, None) => {
            let _ = write!(text, "; it can be answered with {}", answers(&APPROVAL));
        }
        (StepState::Unknown, None) => {
            let _ = write!(text, "; it can be answered with {}", answers(&REPETITION));
        }
        _ => {}
    }
    text
}

const APPROVAL: [StepDecision; 3] = [
    StepDecision::Approve,
    StepDecision::Deny,
    StepDecision::Skip,
];
const REPETITION: [StepDecision; 2] = [StepDecision::Repeat, StepDecision::Skip];

fn answers(decisions: &[StepDecision]) -> String {
    let names: Vec<&str> = decisions.iter().map(|decision| decision.as_str()).collect();
    names.join(", ")
}

/// Says that a run was cancelled, or that it will stop soon.
pub(super) fn cancelled_text(what: &str, run: &Run) -> String {
    match run.state {
        RunState::Running => format!("{what} {} was asked to stop.", run.id),
        _ => format!("{what} {} is cancelled.", run.id),
    }
}
