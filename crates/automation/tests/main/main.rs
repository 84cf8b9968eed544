//! Tests of automation.

#[cfg(test)]
mod delivery;
mod workflow;
mod natural_time;
#[cfg(test)]
mod schedule;
