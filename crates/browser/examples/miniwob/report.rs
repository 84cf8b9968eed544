//! The report: a row for each task, and the aims.

use std::time::Duration;

use serde_json::{Value, json};

/// Tasks of BrowserGym's edition.
const ALL_TASKS: usize = 125;
const LEAST_TASKS: usize = 110;
/// Least part of the episodes that must pass, in percent.
const LEAST_PERCENT: usize = 99;
const MOST_MEDIAN: Duration = Duration::from_millis(150);

pub struct TaskResult {
    pub task: &'static str,
    /// The times of the episodes that passed.
    pub times: Vec<Duration>,
    pub errors: Vec<String>,
}

impl TaskResult {
    pub fn new(task: &'static str) -> Self {
        Self {
            task,
            times: Vec::new(),
            errors: Vec::new(),
        }
    }
}

pub struct Report {
    pub tasks: Vec<TaskResult>,
    seeds: u32,
}

impl Report {
    pub const HEAD: &str = "| task | episodes | passed | median ms |\n|---|---|---|---|";

    pub fn new(seeds: u32) -> Self {
        Self {
            tasks: Vec::new(),
            seeds,
        }
    }

    pub fn row(&self, result: &TaskResult) -> String {
        let row = format!(
            "| {} | {} | {} | {} |",
            result.task,
            self.seeds,
            result.times.len(),
            median(&result.times).as_millis()
        );
        let errors = result.errors.iter().map(|error| format!("\n  {error}"));
        row + &errors.collect::<String>()
    }

    fn episodes(&self) -> usize {
        self.tasks.len() * self.seeds as usize
    }

    fn passed(&self) -> usize {
        self.tasks.iter().map(|task| task.times.len()).sum()
    }

    fn passed_tasks(&self) -> usize {
        let is_passed = |task: &&TaskResult| task.errors.is_empty();
        self.tasks.iter().filter(is_passed).count()
    }

    fn median(&self) -> Duration {
        let times = self.tasks.iter().flat_map(|task| &task.times);
        median(&times.copied().collect::<Vec<_>>())
    }

    pub fn summary(&self) -> String {
        format!(
            "{} of {} tasks have a policy, {} passed all episodes; {} of {} episodes passed; median {} ms",
            self.tasks.len(),
            ALL_TASKS,
            self.passed_tasks(),
            self.passed(),
            self.episodes(),
            self.median().as_millis()
        )
    }

    pub fn to_json(&self) -> Value {
        let tasks = self.tasks.iter().map(|task| {
            json!({
                "task": task.task, "episodes": self.seeds, "passed": task.times.len(),
                "medianMs": median(&task.times).as_millis() as u64, "errors": task.errors,
            })
        });
        json!({
            "tasks": tasks.collect::<Vec<_>>(), "allTasks": ALL_TASKS, "passedTasks": self.passed_tasks(),
            "episodes": self.episodes(), "passed": self.passed(),
            "medianMs": self.median().as_millis() as u64,
        })
    }

    /// Returns the aims that were missed. The number of tasks counts only in a whole run.
    pub fn missed_aims(&self, is_whole: bool) -> Vec<String> {
        let mut missed = Vec::new();
        if is_whole && self.tasks.len() < LEAST_TASKS {
            missed.push(format!("fewer than {LEAST_TASKS} tasks"));
        }
        if self.passed() * 100 < self.episodes() * LEAST_PERCENT {
            missed.push(format!(
                "less than {LEAST_PERCENT} % of the episodes passed"
            ));
        }
        if is_whole && self.median() > MOST_MEDIAN {
            missed.push(format!(
                "the median is above {} ms",
                MOST_MEDIAN.as_millis()
            ));
        }
        missed
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
