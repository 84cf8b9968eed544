mod chain;
mod faults;
mod question;
mod setup;
mod tools;
mod turns;
mod x402;
