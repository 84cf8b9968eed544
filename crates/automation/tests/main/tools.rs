//! Tests of the automator's tools (S87) and of planning.

mod background;
mod cron;
mod hostile;
mod permission;
mod phrases;
mod setup;
mod workflows;
