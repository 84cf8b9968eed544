//! End-to-end tests of the binary.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod attachments;
#[cfg(test)]
mod automation;
#[cfg(test)]
mod config;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod graph;
#[cfg(test)]
mod knowledge;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod older_store;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod payment;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod session;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod store_faults;
#[cfg(test)]
mod untrusted_project;
#[cfg(test)]
mod vault;
