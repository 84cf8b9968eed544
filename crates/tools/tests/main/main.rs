//! Hands, as whoever calls the tools sees them.

#[cfg(test)]
mod escape;
#[cfg(test)]
mod files;
#[cfg(test)]
mod files_change;
#[cfg(test)]
mod files_confinement;
#[cfg(test)]
mod files_executed;
#[cfg(test)]
mod files_search;
#[cfg(test)]
mod files_undo;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod temporary;
