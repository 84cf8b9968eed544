//! Tests of automation.

#[cfg(test)]
mod delivery;
#[cfg(test)]
mod natural_time;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod workflow;
