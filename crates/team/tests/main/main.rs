//! Tests of the team.

#[cfg(test)]
mod capability;
#[cfg(test)]
mod classic;
#[cfg(test)]
mod instruction;
#[cfg(test)]
mod partition;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod specs;
#[cfg(test)]
mod tree;
