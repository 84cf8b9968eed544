//! The dialects: what is sent, and what is understood.

#[cfg(test)]
mod decode;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod endless;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod setup;
