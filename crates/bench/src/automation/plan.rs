//! The jobs of the kills, and when each is due: computed without the product.

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use lango_automation::schedule::Timetable;
use lango_domain::AgentName;
use lango_domain::automation::{
    CatchUp, JobAction, NewJob, NewRun, OverlapRule, RunKind, RunSpec, Schedule, ScheduleKind,
    SessionMode,
};
use lango_domain::event::Principal;
use serde_json::json;

use super::work::{APPEND, LOOK_FIRST, READ};

/// The evening before the clocks change in Berlin.
pub const START: &str = "2026-03-28T20:00:00Z";
const ZONE: &str = "Europe/Berlin";

/// Steps that read, run turns, and have effects, partly at the same time.
const DEFINITION: &str = "
name: mixed
concurrency: 2
steps:
  - {id: read, tool: READ, with: {number: 1}}
  - {id: ask, agent: operator, prompt: Append., input: ['{{read.result}}'], depends_on: [read]}
  - {id: write, tool: APPEND, with: {number: 1}, depends_on: [read]}
  - {id: send, tool: APPEND, with: {number: 2}, depends_on: [ask, write]}
  - {id: last, agent: operator, prompt: Append., depends_on: [send]}
";
/// The steps whose turns an agent runs. They are resumed, never repeated.
pub const AGENT_STEPS: [&str; 2] = ["ask", "last"];
/// The steps that call the tool with an effect.
pub const TOOL_STEPS: [&str; 2] = ["write", "send"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Reminder,
    /// Delivered to a file.
    FileReminder,
    Prompt,
    /// A prompt for the team, which delegates it.
    TeamPrompt,
    /// All runs in one session.
    MainPrompt,
    Workflow,
}

/// A job with a schedule that repeats after some minutes.
#[derive(Clone, Debug)]
pub struct MeasuredJob {
    pub name: String,
    pub work: Work,
    pub minutes: i64,
    pub kind: ScheduleKind,
    /// False if only the last occurrence of a pause runs.
    pub runs_all: bool,
    pub created: Timestamp,
}

/// Returns the jobs of the kills.
pub fn jobs(created: Timestamp) -> Vec<MeasuredJob> {
    let works = [
        (Work::Reminder, 6),
        (Work::FileReminder, 2),
        (Work::Prompt, 5),
        (Work::TeamPrompt, 2),
        (Work::MainPrompt, 2),
        (Work::Workflow, 5),
    ];
    let mut planned = Vec::new();
    for (work, count) in works {
        for number in 0..count {
            // Intervals of cron schedules divide an hour.
            let (kind, minutes) = match number % 2 {
                0 => (ScheduleKind::Cron, [10, 15, 20, 30][planned.len() % 4]),
                _ => (ScheduleKind::Every, 9 + planned.len() as i64),
            };
            planned.push(MeasuredJob {
                name: format!("{work:?} {number}"),
                work,
                minutes,
                kind,
                runs_all: !(number == 1 && matches!(work, Work::Reminder | Work::Prompt)),
                created,
            });
        }
    }
    planned
}

impl MeasuredJob {
    /// Returns the times at which the job is due, through `until`.
    pub fn due_times(&self, until: Timestamp) -> Vec<Timestamp> {
        let interval = self.minutes * 60;
        let first = match self.kind {
            // Whole minutes of the clock. Berlin is whole hours away from UTC, before and after the change.
            ScheduleKind::Cron => (self.created.as_second() / interval + 1) * interval,
            _ => self.created.as_second() + interval,
        };
        let seconds = (first..=until.as_second()).step_by(interval as usize);
        seconds
            .filter_map(|second| Timestamp::from_second(second).ok())
            .collect()
    }

    pub fn to_new_job(&self) -> Result<NewJob> {
        let text = match self.kind {
            ScheduleKind::Cron => format!("*/{} * * * *", self.minutes),
            _ => format!("{}m", self.minutes),
        };
        let (catch_up, overlap) = match self.runs_all {
            true => (CatchUp::All, OverlapRule::Queue),
            false => (CatchUp::Once, OverlapRule::Skip),
        };
        let new = new_job(&self.name, self.kind, text, self.work, self.created)?;
        Ok(NewJob {
            catch_up,
            overlap,
            ..new
        })
    }
}

/// Returns a reminder that is due once.
pub fn single_reminder(name: &str, due: Timestamp, now: Timestamp) -> Result<NewJob> {
    new_job(name, ScheduleKind::At, due.to_string(), Work::Reminder, now)
}

fn new_job(
    name: &str,
    kind: ScheduleKind,
    text: String,
    work: Work,
    created: Timestamp,
) -> Result<NewJob> {
    let schedule = Schedule {
        kind,
        text,
        time_zone: ZONE.to_owned(),
        anchor: created,
    };
    Ok(NewJob {
        principal: Principal::local(),
        name: name.to_owned(),
        next_due: Timetable::read(&schedule)?.next_after(created),
        schedule,
        catch_up: CatchUp::All,
        grace: SignedDuration::from_hours(24),
        overlap: OverlapRule::Queue,
        spec: spec(name, work)?,
        created,
    })
}

/// Returns a run that a user starts directly.
pub fn direct_run(number: usize, now: Timestamp) -> Result<NewRun> {
    let (kind, work) = match number % 2 {
        0 => (RunKind::Workflow, Work::Workflow),
        _ => (RunKind::Background, Work::Prompt),
    };
    let name = format!("direct {number}");
    Ok(NewRun {
        kind,
        job: None,
        principal: Principal::local(),
        due: now,
        spec: spec(&name, work)?,
        name,
    })
}

fn spec(name: &str, work: Work) -> Result<RunSpec> {
    let prompt = |text: &str, agent: Option<&str>| {
        let agent = agent.map(AgentName::new).transpose()?;
        anyhow::Ok(JobAction::Prompt {
            text: text.to_owned(),
            agent,
        })
    };
    let action = match work {
        Work::Reminder | Work::FileReminder => JobAction::Reminder {
            text: format!("remember {name}"),
        },
        Work::Prompt | Work::MainPrompt => prompt("Append.", Some("operator"))?,
        // A delegation that was interrupted is given again, so this model always looks first.
        Work::TeamPrompt => prompt(&format!("Append, but {LOOK_FIRST}."), None)?,
        Work::Workflow => JobAction::Workflow {
            name: "mixed".to_owned(),
            definition: DEFINITION.replace("READ", READ).replace("APPEND", APPEND),
            params: serde_json::Map::new(),
        },
    };
    let target = match work {
        Work::FileReminder => "file:notes.md",
        _ => "inbox",
    };
    let session_mode = match work {
        Work::MainPrompt => SessionMode::Main,
        _ => SessionMode::Isolated,
    };
    Ok(serde_json::from_value(json!({
        "action": action,
        "session_mode": session_mode,
        "deliver_to": [target],
        "allow": [APPEND],
    }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedules_of_the_product_are_those_of_the_plan() {
        let start: Timestamp = START.parse().unwrap();
        let until = start + SignedDuration::from_hours(72);
        for job in jobs(start) {
            let schedule = job.to_new_job().unwrap().schedule;
            let timetable = Timetable::read(&schedule).unwrap();
            let product = timetable.occurrences_after(start);
            let product: Vec<Timestamp> = product.take_while(|due| *due <= until).collect();
            assert_eq!(product, job.due_times(until), "{schedule:?}");
        }
    }
}
