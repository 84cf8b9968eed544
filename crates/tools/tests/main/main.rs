//! Integration tests of the built-in tools.

#[cfg(test)]
mod command_kinds;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod files;
#[cfg(test)]
mod files_change;
#[cfg(test)]
mod files_confinement;
#[cfg(test)]
mod files_search;
#[cfg(test)]
mod files_sensitive_paths;
#[cfg(test)]
mod files_undo;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod temp_dir;
