//! Command in, output out.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod config;
#[cfg(test)]
mod setup;
