//! Tests against a real browser and pages on loopback.

#[cfg(test)]
mod actions;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod downloads;
#[cfg(test)]
mod egress;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod outline;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod setup;
