//! Tests of the gateway over real connections, with a real store and scripted models.

#[cfg(test)]
mod a2a;
#[cfg(test)]
mod access;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod attachments;
#[cfg(test)]
mod client;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod session_match;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod turns;
