//! The gateway over real connections, with a real store and scripted models.

#[cfg(test)]
mod a2a;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod client;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod described;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod house;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod turns;
