//! Tests of automation.

#[cfg(test)]
mod catch_up;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod dying_store;
#[cfg(test)]
mod interrupted_calls;
#[cfg(test)]
mod natural_time;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod scheduler_loop;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod unattended;
#[cfg(test)]
mod workflow;
