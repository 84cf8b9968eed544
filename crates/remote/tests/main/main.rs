//! What holds for colleagues in other processes.

mod cards;
mod hostile;
mod shapes;
