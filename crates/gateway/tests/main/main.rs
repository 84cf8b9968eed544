//! The gateway over real connections.

#[cfg(test)]
mod a2a;
