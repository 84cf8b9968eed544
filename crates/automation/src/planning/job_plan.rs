//! Plans jobs.

use jiff::Zoned;
use lango_domain::Safety;
use lango_domain::automation::{Job, NewJob, Schedule, ScheduleKind};

use super::WorkPlanner;
use super::caller::{CallingRun, Requester};
use super::error::PlanError;
use super::names::check_name;
use super::request::{JobRequest, WorkRequest, WorkTime};
use super::work::{PlannedAction, PlannedWork};
use crate::natural_time::{SentenceWork, TimePhrase, read_time};
use crate::schedule::{Timetable, parse_zone};
use crate::workflow::Workflow;

/// A job that was checked and can be added.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    pub job: NewJob,
    /// The next three occurrences, in the zone of the job.
    pub next: Vec<Zoned>,
    /// The level at which adding the job is approved.
    pub level: Safety,
    /// The workflow of the job, if it runs one.
    pub workflow: Option<Workflow>,
    /// Most jobs of the principal.
    pub limit: usize,
}

impl WorkPlanner<'_> {
    /// Checks a request for a job.
    pub async fn plan_job(
        &self,
        requester: &Requester,
        request: &JobRequest,
    ) -> Result<PlannedJob, PlanError> {
        let caller = self.calling_run(requester).await?;
        let (action, time) = self.job_action(requester, request).await?;
        let work = self.work(action, &request.options, requester, caller.as_ref())?;
        let schedule = self.schedule(request, time, work.workflow.as_ref())?;
        let timetable = Timetable::read(&schedule)?;
        let next = timetable.check(&schedule, self.now, self.limits.min_interval)?;
        self.check_nested(requester, caller.as_ref()).await?;
        let name = match &request.name {
            Some(name) => check_name(name)?,
            None => self.make_name(&requester.principal, &work.title).await?,
        };
        let PlannedWork {
            spec,
            level,
            workflow,
            ..
        } = work;
        let job = NewJob {
            principal: requester.principal.clone(),
            name,
            schedule,
            catch_up: request.catch_up,
            grace: self.limits.grace,
            overlap: request.overlap,
            spec,
            created: self.now,
            next_due: next.first().map(Zoned::timestamp),
        };
        Ok(PlannedJob {
            job,
            next,
            level,
            workflow,
            limit: self.limits.max_jobs,
        })
    }

    /// Adds a planned job.
    pub async fn add_job(&self, planned: &PlannedJob) -> Result<Job, PlanError> {
        let job = planned.job.clone();
        Ok(self.store.add_job(job, planned.limit).await?)
    }

    /// Returns what the job does, and the time that its sentence says.
    async fn job_action(
        &self,
        requester: &Requester,
        request: &JobRequest,
    ) -> Result<(PlannedAction, Option<TimePhrase>), PlanError> {
        let words = match &request.time {
            WorkTime::Words(words) => Some(self.read_words(words, request.timezone.as_deref())?),
            _ => None,
        };
        let action = match &request.work {
            WorkRequest::Reminder(text) => self.reminder(text)?,
            WorkRequest::Prompt { text, agent } => self.prompt(text, agent.as_deref())?,
            WorkRequest::Workflow(workflow) => {
                self.workflow(&requester.principal, workflow).await?
            }
            WorkRequest::InSentence => match (&words, &request.time) {
                (Some(phrase), WorkTime::Words(sentence)) => match phrase.work(sentence)? {
                    SentenceWork::Reminder(text) => self.reminder(&text)?,
                    SentenceWork::Prompt(text) => self.prompt(&text, None)?,
                },
                _ => return Err(PlanError::NoWork),
            },
        };
        let is_apart = !matches!(request.work, WorkRequest::InSentence);
        if let Some(error) = words
            .as_ref()
            .and_then(TimePhrase::unread_rest)
            .filter(|_| is_apart)
        {
            return Err(error.into());
        }
        Ok((action, words))
    }

    fn read_words(&self, words: &str, timezone: Option<&str>) -> Result<TimePhrase, PlanError> {
        let zone = match timezone {
            Some(name) => parse_zone(name)?,
            None => self.time_zone.clone(),
        };
        let now = self.now.to_zoned(zone);
        Ok(read_time(words, &now)?)
    }

    fn schedule(
        &self,
        request: &JobRequest,
        time: Option<TimePhrase>,
        workflow: Option<&Workflow>,
    ) -> Result<Schedule, PlanError> {
        let (kind, text, own_zone) = match (&request.time, time) {
            (WorkTime::Schedule { kind, text }, _) => (*kind, text.clone(), None),
            (_, Some(time)) => (time.kind, time.text, time.time_zone),
            (_, None) => {
                let name = workflow.map(|workflow| workflow.name.clone());
                let text = workflow.and_then(|workflow| workflow.schedule.clone());
                let none = || PlanError::NoScheduleInWorkflow(name.unwrap_or_default());
                let zone = workflow.and_then(|workflow| workflow.timezone.clone());
                (ScheduleKind::Cron, text.ok_or_else(none)?, zone)
            }
        };
        // A zone in the sentence is about its time; that of the file is only a default.
        let is_sentence = matches!(request.time, WorkTime::Words(_));
        let named = match is_sentence {
            true => own_zone.or_else(|| request.timezone.clone()),
            false => request.timezone.clone().or(own_zone),
        };
        let time_zone = match named {
            Some(name) => name.trim().to_owned(),
            None => self.time_zone.iana_name().unwrap_or("UTC").to_owned(),
        };
        Ok(Schedule {
            kind,
            text: text.trim().to_owned(),
            time_zone,
            anchor: self.now,
        })
    }

    /// Checks the number of jobs that jobs have made.
    async fn check_nested(
        &self,
        requester: &Requester,
        caller: Option<&CallingRun>,
    ) -> Result<(), PlanError> {
        if caller.is_none() {
            return Ok(());
        }
        let jobs = self.store.jobs(&requester.principal).await?;
        let is_nested = |job: &&Job| job.spec.depth > 0 && (job.next_due.is_some() || !job.enabled);
        let limit = self.limits.max_nested_jobs;
        match jobs.iter().filter(is_nested).count() >= limit {
            true => Err(PlanError::TooManyNested(limit)),
            false => Ok(()),
        }
    }
}
