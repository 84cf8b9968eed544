//! The vault over a real store file.

#[cfg(test)]
mod export;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod slots;
#[cfg(test)]
mod tools;
