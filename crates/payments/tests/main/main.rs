//! Tests of payments, with a chain on this machine.

#[cfg(test)]
mod chain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod question;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod x402;
