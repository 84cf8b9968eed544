//! Tests of remote agents and of the A2A protocol.

#[cfg(test)]
mod bad_agents;
#[cfg(test)]
mod cards;
#[cfg(test)]
mod client;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod server;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod wire_format;
