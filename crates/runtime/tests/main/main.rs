//! Tests of the runtime with a scripted team.

#[cfg(test)]
mod harness;
#[cfg(test)]
mod permission;
#[cfg(test)]
mod turns;
