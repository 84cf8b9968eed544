//! Integration tests of the memory crate.

#[cfg(test)]
mod forgetting;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod inquiries;
#[cfg(test)]
mod knowledge_base;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod memory;
