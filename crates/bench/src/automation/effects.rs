//! The effects of work, which tools wrote without the product.

use std::collections::HashMap;
use std::fs;

use anyhow::Result;

use super::work::WorkFolder;

/// The lines that tools wrote.
pub struct Effects(HashMap<String, usize>);

impl Effects {
    pub fn read(folder: &WorkFolder) -> Result<Self> {
        let file = folder.effects();
        let text = match file.exists() {
            true => fs::read_to_string(&file)?,
            false => String::new(),
        };
        let mut counts = HashMap::new();
        for line in text.lines() {
            // Sessions of steps end with a time and an attempt: workflow-RUN-STEP-TIME-ATTEMPT.
            let session = line.split(' ').next().unwrap_or_default();
            let mut parts = session.split('-');
            let key = match (parts.next(), parts.next(), parts.next()) {
                (Some("workflow"), Some(run), Some(step)) => step_key(run, step),
                _ => session.to_owned(),
            };
            *counts.entry(key).or_default() += 1;
        }
        Ok(Self(counts))
    }

    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    pub fn of_session(&self, session: &str) -> usize {
        self.0.get(session).copied().unwrap_or_default()
    }

    pub fn of_step(&self, run: u64, step: &str) -> usize {
        self.of_session(&step_key(&run.to_string(), step))
    }
}

pub fn step_key(run: &str, step: &str) -> String {
    format!("workflow-{run}-{step}")
}
