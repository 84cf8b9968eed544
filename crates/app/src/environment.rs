//! The process environment, read once at startup.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The environment variables and the working folder.
#[derive(Clone, Debug)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    pub working_folder: PathBuf,
}

impl Environment {
    /// Reads the environment of this process. Variables that are not valid UTF-8 are skipped.
    pub fn from_process() -> io::Result<Self> {
        if std::env::var_os("LANGO_HOME").is_some_and(|home| home.to_str().is_none()) {
            return Err(io::Error::other("LANGO_HOME is not valid UTF-8"));
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Ok(Self {
            variables: variables.collect(),
            working_folder: std::env::current_dir()?,
        })
    }

    /// Returns the value of a variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the folder of the user's configuration. `LANGO_HOME` overrides it.
    pub fn config_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    /// Returns the file with the tool servers that commands have added.
    pub fn servers_file(&self) -> Option<PathBuf> {
        self.config_folder().map(|folder| folder.join("mcp.json"))
    }

    /// Returns the folder of Lango's data. `LANGO_HOME` overrides it.
    pub fn data_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_DATA_HOME", ".local/share")
    }

    fn folder(&self, variable: &str, default: &str) -> Option<PathBuf> {
        if let Some(home) = self.get("LANGO_HOME") {
            return Some(self.working_folder.join(home));
        }
        let base = self.get(variable).map(PathBuf::from);
        base.or_else(|| {
            self.get("HOME")
                .map(|home| PathBuf::from(home).join(default))
        })
        .map(|dir| dir.join("lango"))
    }
}
