//! The file with the tool servers that commands have added: `mcp.json` in the user's folder. It holds
//! ordinary settings, below `mcp.servers`.

use std::path::{Path, PathBuf};

use lango_domain::spanned::parse_yaml;
use lango_files::{ReadError, read_bounded};
use lango_mcp::ServerKey;
use serde_json::{Map, Value, json};

use crate::config::ConfigError;
use crate::environment::Environment;

const MAX_BYTES: u64 = 1024 * 1024;

pub struct ServersFile {
    path: PathBuf,
    servers: Map<String, Value>,
}

/// The servers of another program's file.
#[derive(Default)]
pub struct ImportedServers {
    /// The settings by names that are valid here.
    pub servers: Vec<(ServerKey, Value)>,
    /// Servers that were left out, and names that were changed.
    pub warnings: Vec<String>,
}

impl ServersFile {
    /// Reads the file; a missing one has no servers.
    pub fn open(environment: &Environment) -> Result<Self, ConfigError> {
        let path = environment.servers_file().ok_or_else(|| {
            ConfigError::new("there is no user folder").with_hint("set HOME or LANGO_HOME")
        })?;
        let servers = match read_bounded(&path, MAX_BYTES) {
            Ok(bytes) => {
                let invalid = |error| ConfigError::new(format!("{}: {error}", path.display()));
                let file: Value = serde_json::from_slice(&bytes).map_err(invalid)?;
                let servers = file.pointer("/mcp/servers").and_then(Value::as_object);
                servers.cloned().unwrap_or_default()
            }
            Err(ReadError::Missing) => Map::new(),
            Err(error) => return Err(ConfigError::new(format!("{}: {error}", path.display()))),
        };
        Ok(Self { path, servers })
    }

    pub fn contains(&self, key: &ServerKey) -> bool {
        self.servers.contains_key(key.as_str())
    }

    pub fn set(&mut self, key: &ServerKey, settings: Value) {
        self.servers.insert(key.to_string(), settings);
    }

    /// Returns true if the server was there.
    pub fn remove(&mut self, key: &ServerKey) -> bool {
        self.servers.remove(key.as_str()).is_some()
    }

    /// Writes the file. Only the user can read it.
    pub fn save(&self) -> Result<(), ConfigError> {
        let text = format!("{:#}\n", json!({ "mcp": { "servers": self.servers } }));
        lango_mcp::write_private_file(&self.path, text.as_bytes())
            .map_err(|error| ConfigError::new(format!("{}: {error}", self.path.display())))
    }
}

impl ImportedServers {
    /// Reads the servers of a file in the form that other programs use: `mcpServers` or `servers` in JSON, or
    /// `extensions` in YAML.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |error: &dyn std::fmt::Display| {
            ConfigError::new(format!("{}: {error}", path.display()))
        };
        let bytes = read_bounded(path, MAX_BYTES).map_err(|error| failed(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| failed(&error))?;
        let file = parse_yaml(&text)
            .map_err(|error| failed(&format!("line {}: {}", error.line, error.message)))?
            .to_value();
        let places = ["/mcpServers", "/servers", "/extensions", "/mcp/servers"];
        let found = places
            .iter()
            .find_map(|place| file.pointer(place)?.as_object());
        let servers = found
            .ok_or_else(|| failed(&"it has none of `mcpServers`, `servers` and `extensions`"))?;
        let mut imported = Self::default();
        for (name, server) in servers {
            imported.add(name, server);
        }
        Ok(imported)
    }

    fn add(&mut self, name: &str, server: &Value) {
        let shown = lango_text::sanitize::truncated_line(name, 60);
        let key = match ServerKey::parse(&valid_key(name)) {
            Ok(key) => key,
            Err(reason) => return self.warnings.push(reason),
        };
        if self.servers.iter().any(|(other, _)| *other == key) {
            let warning =
                format!("`{shown}`: another server has the name `{key}`; it was left out");
            return self.warnings.push(warning);
        }
        if key.as_str() != name {
            self.warnings.push(format!("`{shown}` is called `{key}`"));
        }
        match read_server(server) {
            Ok(settings) => self.servers.push((key, settings)),
            Err(reason) => self
                .warnings
                .push(format!("`{shown}` was left out: {reason}")),
        }
    }
}

/// Returns the settings of a server of another program.
fn read_server(server: &Value) -> Result<Value, String> {
    let text = |names: [&str; 3]| {
        let value = names.iter().find_map(|name| server.get(name)?.as_str());
        value.map(variables).transpose()
    };
    let table = |names: [&str; 2]| -> Result<Map<String, Value>, String> {
        let found = names.iter().find_map(|name| server.get(name)?.as_object());
        let values = found.into_iter().flatten();
        values
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
            .map(|(name, value)| Ok((name.clone(), Value::from(variables(value)?))))
            .collect()
    };
    let mut settings = Map::new();
    let mut set = |name: &str, value: Value| _ = settings.insert(name.to_owned(), value);
    match (
        text(["command", "cmd", "cmd"])?,
        text(["url", "uri", "serverUrl"])?,
    ) {
        (Some(command), _) => {
            set("command", command.into());
            let args = server.get("args").and_then(Value::as_array).into_iter();
            let args = args.flatten().filter_map(Value::as_str).map(variables);
            set("args", args.collect::<Result<Vec<_>, _>>()?.into());
            set("env", table(["env", "envs"])?.into());
            if let Some(cwd) = text(["cwd", "cwd", "cwd"])? {
                set("cwd", cwd.into());
            }
        }
        (None, Some(url)) => {
            set("url", url.into());
            set("headers", table(["headers", "headers"])?.into());
        }
        (None, None) => return Err("it has neither a command nor a URL".to_owned()),
    }
    let is_off = server.get("disabled") == Some(&Value::Bool(true))
        || server.get("enabled") == Some(&Value::Bool(false));
    if is_off {
        set("enabled", false.into());
    }
    Ok(Value::Object(settings))
}

/// Converts references to variables: `${env:NAME}` is `${NAME}` here.
fn variables(text: &str) -> Result<String, String> {
    let text = text.replace("${env:", "${");
    let is_other = |name: &str| !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut names = text
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    match names.find(|name| is_other(name)) {
        Some(name) => Err(format!("`${{{name}}}` has no meaning here")),
        None => Ok(text),
    }
}

fn valid_key(name: &str) -> String {
    let mut key = String::new();
    for c in name.trim().to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => key.push(c),
            _ if key.is_empty() || key.ends_with('-') => {}
            _ => key.push('-'),
        }
    }
    key.truncate(32);
    key.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str) -> ImportedServers {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        ImportedServers::read(file.path()).unwrap()
    }

    #[test]
    fn reads_the_files_of_other_programs() {
        let json = r#"{ "mcpServers": {
            "My Files": { "command": "npx", "args": ["-y", "x"], "env": { "TOKEN": "${env:TOKEN}" } },
            "remote": { "url": "https://example.com/mcp", "headers": { "X-Key": "k" }, "disabled": true },
            "asks": { "command": "x", "args": ["${input:key}"] },
            "nothing": {} } }"#;
        let imported = import(json);
        let names: Vec<&str> = imported
            .servers
            .iter()
            .map(|(key, _)| key.as_str())
            .collect();
        assert_eq!(names, ["my-files", "remote"]);
        assert_eq!(imported.servers[0].1["env"]["TOKEN"], "${TOKEN}");
        assert_eq!(imported.servers[1].1["enabled"], false);
        assert_eq!(imported.warnings.len(), 3, "{:?}", imported.warnings);
        let yaml = "extensions:\n  time:\n    type: stdio\n    cmd: uvx\n    args: [mcp-server-time]\n    envs:\n      A: b\n";
        let imported = import(yaml);
        assert_eq!(imported.servers[0].1["command"], "uvx");
        assert_eq!(imported.servers[0].1["env"]["A"], "b");
    }

    #[test]
    fn a_file_without_servers_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["{}", "[]", "{", "\u{0}"] {
            std::fs::write(file.path(), text).unwrap();
            assert!(ImportedServers::read(file.path()).is_err(), "{text:?}");
        }
    }
}
