//! What holds for colleagues in other processes.

mod bad_peers;
mod cards;
mod client;
mod hostile;
mod server;
mod setup;
mod shapes;
