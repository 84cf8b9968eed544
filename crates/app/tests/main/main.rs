//! Tests of configuration and assembly.

#[cfg(test)]
mod adding_a_tool;
#[cfg(test)]
mod automation;
#[cfg(test)]
mod config;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod project;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod team;

#[cfg(test)]
mod setup {
    use std::path::Path;

    use lango_app::config::TrustRequest;
    use lango_app::{ConfigError, Environment, LoadedConfig, Overrides};
    use tempfile::TempDir;

    /// A temporary working folder and home folder.
    pub struct Machine {
        pub folder: TempDir,
        pub environment: Environment,
    }

    impl Machine {
        pub fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().join("work");
            std::fs::create_dir_all(&work).unwrap();
            let home = folder.path().join("home").display().to_string();
            let variables = [("HOME".to_owned(), home)].into();
            Self {
                environment: Environment {
                    variables,
                    working_folder: work,
                },
                folder,
            }
        }

        pub fn with_file(self, name: &str, text: &str) -> Self {
            let file = self.folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).unwrap();
            std::fs::write(file, text).unwrap();
            self
        }

        pub fn with_variable(mut self, name: &str, value: &str) -> Self {
            self.environment
                .variables
                .insert(name.to_owned(), value.to_owned());
            self
        }

        /// Trusts the settings and files of the working folder.
        pub fn trust(self) -> Self {
            self.trust_request()
                .unwrap()
                .unwrap()
                .confirm(&self.environment)
                .unwrap();
            self
        }

        pub fn trust_request(&self) -> Result<Option<TrustRequest>, ConfigError> {
            LoadedConfig::trust_request(&self.environment, &Overrides::default())
        }

        pub fn load(&self, set: &[&str]) -> Result<LoadedConfig, ConfigError> {
            let set = set.iter().map(|text| (*text).to_owned()).collect();
            LoadedConfig::load(&self.environment, &Overrides { config: None, set })
        }
    }
}
