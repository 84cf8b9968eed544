//! Tests of the engine: `.turn` files and properties.

#[cfg(test)]
mod endings;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod turns;
