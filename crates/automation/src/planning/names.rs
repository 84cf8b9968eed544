//! Names of jobs.

use lango_domain::StoreError;
use lango_domain::automation::{AutomationStore, Job, JobId};
use lango_domain::event::Principal;
use lango_text::sanitize::{is_hidden, one_line, truncated_line};
use lango_text::suggest::did_you_mean;

use super::WorkPlanner;
use super::error::{PlanError, hint};

const MAX_NAME_CHARS: usize = 64;
/// The longest name that is made from the work.
const MAX_MADE_CHARS: usize = 40;
/// Names that are tried for a job whose name is taken: `name 2`, `name 3` …
const MAX_NUMBERED: usize = 1_000;
/// Jobs that an error lists.
const LISTED_JOBS: usize = 10;

/// Checks the name that a user gave a job.
pub(super) fn check_name(name: &str) -> Result<String, PlanError> {
    let name = name.trim();
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.chars().count() > MAX_NAME_CHARS {
        format!("it has more than {MAX_NAME_CHARS} characters")
    } else if name.chars().any(|c| c == '\n' || c == '\t' || is_hidden(c)) {
        "it contains line ends or invisible characters".to_owned()
    } else if name.contains('#') || name.chars().all(|c| c.is_ascii_digit()) {
        "numbers and `#` are the ids of jobs".to_owned()
    } else {
        return Ok(name.to_owned());
    };
    Err(PlanError::Name {
        name: truncated_line(name, 80),
        reason,
    })
}

impl WorkPlanner<'_> {
    /// Makes a name from a text that no job of the principal has.
    pub(super) async fn make_name(
        &self,
        principal: &Principal,
        text: &str,
    ) -> Result<String, PlanError> {
        let visible: String = one_line(text)
            .chars()
            .filter(|c| !is_hidden(*c) && *c != '#')
            .collect();
        let base = truncated_line(visible.trim(), MAX_MADE_CHARS);
        let base = match check_name(&base) {
            Ok(base) => base,
            Err(_) => "job".to_owned(),
        };
        for number in 1..=MAX_NUMBERED {
            let name = match number {
                1 => base.clone(),
                number => format!("{base} {number}"),
            };
            let taken = self.store.job(principal, &name).await?;
            // The store renames a job of that name if it is over.
            if taken.is_none_or(|job| job.enabled && job.next_due.is_none()) {
                return Ok(name);
            }
        }
        Err(PlanError::NameTaken { name: base })
    }
}

/// No job, or more than one, has this name.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobNotFound {
    #[error("there is no job `{name}`{hint}")]
    Unknown { name: String, hint: String },
    #[error("`{name}` may be one of these jobs: {}", .jobs.join(", "))]
    Ambiguous { name: String, jobs: Vec<String> },
    #[error("{0}; {hint}", hint = .0.hint())]
    Store(#[from] StoreError),
}

/// Finds a job by its name, its id (`7` or `#7`), or a part of its name that no other job has.
pub async fn find_job(
    store: &dyn AutomationStore,
    principal: &Principal,
    text: &str,
) -> Result<Job, JobNotFound> {
    let text = text.trim();
    if let Some(job) = store.job(principal, text).await? {
        return Ok(job);
    }
    let jobs = store.jobs(principal).await?;
    let id: Option<JobId> = text.strip_prefix('#').unwrap_or(text).parse().ok();
    if let Some(job) = jobs.iter().find(|job| Some(job.id) == id) {
        return Ok(job.clone());
    }
    let wanted = text.to_lowercase();
    let is_same = |job: &&Job| job.name.to_lowercase() == wanted;
    let contains = |job: &&Job| !wanted.is_empty() && job.name.to_lowercase().contains(&wanted);
    let mut found: Vec<&Job> = jobs.iter().filter(is_same).collect();
    if found.is_empty() {
        found = jobs.iter().filter(contains).collect();
    }
    let name = truncated_line(text, 80);
    match found.as_slice() {
        [job] => Ok((*job).clone()),
        [] => Err(JobNotFound::Unknown {
            hint: unknown_hint(text, &jobs),
            name,
        }),
        several => Err(JobNotFound::Ambiguous {
            name,
            jobs: listed(several.iter().copied()),
        }),
    }
}

fn unknown_hint(text: &str, jobs: &[Job]) -> String {
    if jobs.is_empty() {
        return "; there are no jobs".to_owned();
    }
    let near = did_you_mean(text, jobs.iter().map(|job| job.name.as_str()));
    hint(Some(near.unwrap_or_else(|| {
        format!("the jobs are {}", listed(jobs.iter()).join(", "))
    })))
}

fn listed<'a>(jobs: impl ExactSizeIterator<Item = &'a Job>) -> Vec<String> {
    let more = jobs.len().saturating_sub(LISTED_JOBS);
    let mut names: Vec<String> = jobs
        .take(LISTED_JOBS)
        .map(|job| format!("`{}` (#{})", job.name, job.id))
        .collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names
}
