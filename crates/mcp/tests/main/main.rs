//! Tests with real server processes in the sandbox.

#[cfg(test)]
mod bad_servers;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod processes;
