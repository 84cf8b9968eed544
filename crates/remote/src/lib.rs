//! Colleagues in other processes.

pub mod a2a;
