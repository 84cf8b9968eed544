//! Arguments of `lango cron`, `bg`, `workflow`, `inbox` and `automate`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use lango_domain::automation::RunState;

#[derive(Subcommand)]
pub enum CronCommand {
    /// Add a job: work with a schedule.
    Add(Box<CronAddArgs>),
    /// List jobs with their next occurrences and their last run.
    List {
        /// Also those that will not run again.
        #[arg(long)]
        all: bool,
    },
    /// Show everything about a job.
    Show {
        /// The name of the job.
        name: String,
    },
    /// List the runs of jobs, newest first, with the reason of those that did not happen.
    History {
        /// Only this job.
        name: Option<String>,
        /// Only runs in this state.
        #[arg(long, value_name = "STATE")]
        state: Option<StateFilter>,
        /// The maximum number of runs.
        #[arg(long, value_name = "N", default_value = "20")]
        limit: NonZeroUsize,
    },
    /// Run a job now, out of turn.
    Run {
        /// The name of the job.
        name: String,
    },
    /// Pause a job; occurrences until it is resumed do not happen.
    Pause {
        /// The name of the job.
        name: String,
    },
    /// Resume a paused job.
    Resume {
        /// The name of the job.
        name: String,
    },
    /// Remove a job and its history.
    Remove {
        /// The name of the job.
        name: String,
    },
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("schedule").args(["cron", "every", "at", "when"]))]
#[command(group = clap::ArgGroup::new("work").required(true).args(["prompt", "remind", "workflow"]))]
pub struct CronAddArgs {
    /// The name of the job.
    pub name: String,
    /// Run at these times: minute, hour, day, month, weekday, as in "0 7 * * MON-FRI".
    #[arg(long, value_name = "FIELDS")]
    pub cron: Option<String>,
    /// Run again and again after this time, such as 2h or 15m.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub every: Option<String>,
    /// Run once, at this time, such as "2026-11-20 09:00".
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// The time in plain words, such as "tomorrow at 9" or "every Monday at 8".
    #[arg(long, value_name = "TEXT")]
    pub when: Option<String>,
    /// The request of a turn.
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// A text that is delivered as it is, without a model.
    #[arg(long, value_name = "TEXT")]
    pub remind: Option<String>,
    /// A workflow: a file, or the name of a saved one.
    #[arg(long, value_name = "FILE|NAME")]
    pub workflow: Option<String>,
    /// A parameter of the workflow; may be given several times.
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// The time zone of the schedule, such as Europe/Berlin [default: that of this machine].
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Ask only this agent instead of the team.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub delivery: DeliveryArgs,
    /// Rule for occurrences that were due while no scheduler ran.
    #[arg(long, value_name = "RULE", default_value = "once")]
    pub catch_up: CatchUpChoice,
    /// Rule for an occurrence that is due while the run before it is not over.
    #[arg(long, value_name = "RULE", default_value = "skip")]
    pub overlap: OverlapChoice,
    /// The most tokens that one run may use.
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<u64>,
    /// The most US dollars that one run may cost.
    #[arg(long, value_name = "USD")]
    pub budget_usd: Option<f64>,
    /// A new session for every run, or one session for all of them.
    #[arg(long, value_name = "MODE", default_value = "isolated")]
    pub session_mode: SessionChoice,
}

/// Where results go, how long a run may take, and what it may do.
#[derive(clap::Args, Default)]
pub struct DeliveryArgs {
    /// Where results go: inbox, notify, session:NAME, file:PATH, webhook:URL, command:LINE or
    /// email:ADDRESS; may be given several times [default: inbox].
    #[arg(long, value_name = "TARGET")]
    pub deliver_to: Vec<String>,
    /// Where failures go, as for --deliver-to [default: inbox].
    #[arg(long, value_name = "TARGET")]
    pub failure_deliver_to: Vec<String>,
    /// The longest time of one run, such as 10m; waiting for approvals does not count.
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Allow calls without asking: a tool, or a tool and a pattern, such as "exec_shell df*"; may
    /// be given several times.
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Do not ask before the rules of --allow and the tool steps of a workflow are allowed.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum CatchUpChoice {
    /// The last one runs.
    Once,
    /// None runs.
    Skip,
    /// All run, one after the other.
    All,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum OverlapChoice {
    /// It does not run.
    Skip,
    /// It runs afterwards.
    Queue,
    /// The earlier run is cancelled.
    Replace,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SessionChoice {
    Isolated,
    Main,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum StateFilter {
    Queued,
    Running,
    Waiting,
    Done,
    Failed,
    Skipped,
    Missed,
    Cancelled,
}

impl From<StateFilter> for RunState {
    fn from(state: StateFilter) -> Self {
        match state {
            StateFilter::Queued => Self::Queued,
            StateFilter::Running => Self::Running,
            StateFilter::Waiting => Self::Waiting,
            StateFilter::Done => Self::Done,
            StateFilter::Failed => Self::Failed,
            StateFilter::Skipped => Self::Skipped,
            StateFilter::Missed => Self::Missed,
            StateFilter::Cancelled => Self::Cancelled,
        }
    }
}

#[derive(Subcommand)]
pub enum BackgroundCommand {
    /// Submit a request that runs in the background and survives restarts.
    Submit {
        /// The request.
        #[arg(required = true, value_name = "TEXT")]
        text: Vec<String>,
        /// Ask only this agent instead of the team.
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        #[command(flatten)]
        delivery: DeliveryArgs,
    },
    /// List background tasks, newest first.
    List {
        /// The maximum number of tasks.
        #[arg(long, value_name = "N", default_value = "20")]
        limit: NonZeroUsize,
    },
    /// Show the state of a task.
    Status {
        /// The number of the task.
        id: String,
    },
    /// Print the result of a task.
    Result {
        /// The number of the task.
        id: String,
    },
    /// Cancel a task.
    Cancel {
        /// The number of the task.
        id: String,
    },
}

#[derive(Subcommand)]
pub enum WorkflowCommand {
    /// Run a workflow.
    Run {
        /// A workflow file, or the name of a saved workflow.
        #[arg(value_name = "FILE|NAME")]
        workflow: String,
        /// A parameter of the workflow; may be given several times.
        #[arg(long = "param", value_name = "KEY=VALUE")]
        params: Vec<String>,
        /// Wait until the run is over, and show its progress.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        delivery: DeliveryArgs,
    },
    /// Check workflow files and name every error with its line and column.
    Validate {
        /// The files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// List saved workflows and recent runs.
    List {
        /// The maximum number of runs.
        #[arg(long, value_name = "N", default_value = "20")]
        limit: NonZeroUsize,
    },
    /// Show the steps of a run: their states, attempts and results.
    Status {
        /// The number of the run.
        run: String,
    },
    /// Draw a workflow or a run as SVG.
    Graph {
        /// A workflow file, the name of a saved workflow, or the number of a run.
        #[arg(value_name = "FILE|NAME|RUN")]
        workflow: String,
        /// Write the drawing to this file [default: standard output].
        #[arg(short, long, value_name = "FILE.svg")]
        output: Option<PathBuf>,
    },
    /// Cancel a run.
    Cancel {
        /// The number of the run.
        run: String,
    },
    /// Run the steps of a run again that did not succeed; all others keep their results.
    Retry {
        /// The number of the run.
        run: String,
        /// Also run this step again, and everything that depends on it.
        #[arg(long, value_name = "STEP")]
        from: Option<String>,
        /// Go on without this step; may be given several times.
        #[arg(long, value_name = "STEP")]
        skip: Vec<String>,
    },
    /// Approve a step that waits, or run one of unknown outcome again.
    Approve {
        /// The number of the run.
        run: String,
        /// The id of the step.
        step: String,
    },
    /// Deny a step that waits, or go on without one of unknown outcome.
    Deny {
        /// The number of the run.
        run: String,
        /// The id of the step.
        step: String,
    },
    /// Save a workflow under its name.
    Save {
        /// The workflow file.
        file: PathBuf,
    },
}

#[derive(Subcommand)]
pub enum InboxCommand {
    /// List unread messages, newest first.
    List {
        /// Also list messages that were read.
        #[arg(long)]
        all: bool,
    },
    /// Show a message and mark it as read [default: the oldest unread one].
    Read {
        /// The number of the message.
        #[arg(conflicts_with = "all")]
        id: Option<String>,
        /// Show all unread messages.
        #[arg(long)]
        all: bool,
    },
    /// Delete messages that were read.
    Clear {
        /// Also delete unread messages.
        #[arg(long)]
        all: bool,
    },
}

#[derive(Clone, Copy, Subcommand)]
pub enum AutomateCommand {
    /// Show which process runs the scheduler, and what is due next.
    Status,
    /// Run the scheduler in the foreground; Ctrl-C suspends running work so that it can continue.
    Run,
    /// Write a systemd user unit that runs the scheduler.
    Install {
        /// Only print the unit.
        #[arg(long)]
        print: bool,
    },
}
