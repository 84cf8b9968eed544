use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The result of a run of the binary.
pub struct CommandRun {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandRun {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    pub fn error(&self) -> Value {
        serde_json::from_str::<Value>(&self.stderr).unwrap()["error"].clone()
    }
}

/// An empty temporary folder with an empty `LANGO_HOME` in it.
pub struct TestDir {
    folder: TempDir,
}

impl TestDir {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns a folder whose configuration uses the model `m` of the provider `x` at this URL.
    pub fn with_provider(kind: &str, base_url: &str) -> Self {
        let dir = Self::new();
        let provider = format!(
            "[providers.x]\ntype = \"{kind}\"\nbaseUrl = \"{base_url}\"\nretryDelayMs = 1\n"
        );
        dir.write(
            "home/lango.toml",
            &format!("{provider}[agent]\nprovider = \"x\"\nmodel = \"m\"\n"),
        );
        dir
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let file = self.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub fn lango(&self, args: &[&str]) -> CommandRun {
        self.lango_with(args, &[])
    }

    pub fn lango_with(&self, args: &[&str], variables: &[(&str, &str)]) -> CommandRun {
        CommandRun::from_command(self.command(args).envs(variables.iter().copied()))
    }

    pub fn lango_with_input(&self, args: &[&str], input: &[u8]) -> CommandRun {
        CommandRun::from_command(self.command(args).write_stdin(input))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("lango").unwrap();
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("LANGO_HOME", self.path().join("home"));
        // Far longer than any command takes, so that a hanging command fails.
        command.timeout(Duration::from_secs(300));
        command
    }
}

impl CommandRun {
    fn from_command(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            exit: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn lango(args: &[&str]) -> CommandRun {
    TestDir::new().lango(args)
}
