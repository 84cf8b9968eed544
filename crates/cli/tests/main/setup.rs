use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
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

    /// Runs a command at a terminal, and types the answer after each question. The terminal's
    /// output is stderr.
    pub fn lango_at_terminal(&self, args: &[&str], answer: &str) -> CommandRun {
        let (mut user, name) = open_terminal();
        let side = || File::options().read(true).write(true).open(&name).unwrap();
        // Hidden values are read from the terminal that controls the process.
        let mut command = std::process::Command::new("/usr/bin/setsid");
        command.args(["--ctty", "--wait"]);
        command.arg(assert_cmd::cargo::cargo_bin("lango"));
        self.prepare(&mut command, args);
        command.stdin(side()).stderr(side()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        // The terminal closes when the last process that has it ends.
        drop(command);
        let mut shown = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = user.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..length]);
            if QUESTION_ENDS.iter().any(|end| shown.ends_with(end)) {
                user.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        }
        let output = child.wait_with_output().unwrap();
        CommandRun {
            exit: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(shown).unwrap(),
        }
    }

    /// Starts a command that the caller ends.
    pub fn spawn(&self, args: &[&str]) -> std::process::Child {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("lango"));
        self.prepare(&mut command, args);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn lango_with_all(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
        input: &[u8],
    ) -> CommandRun {
        let mut command = self.command(args);
        command.envs(variables.iter().copied()).write_stdin(input);
        CommandRun::from_command(&mut command)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("lango"));
        self.prepare(&mut command, args);
        let mut command = Command::from_std(command);
        // Far longer than any command takes, so that a hanging command fails.
        command.timeout(Duration::from_secs(300));
        command
    }

    fn prepare(&self, command: &mut std::process::Command, args: &[&str]) {
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("LANGO_HOME", self.path().join("home"));
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

/// The ends of questions at a terminal: of a command, of an agent, and for a hidden value.
const QUESTION_ENDS: [&[u8]; 3] = [b"[y/N] ", b"[n] no: ", b"(not shown): "];

/// Opens a pseudo-terminal. Returns the user's side, and the name of the other.
fn open_terminal() -> (File, String) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    (File::from(user), name.into_string().unwrap())
}

pub fn lango(args: &[&str]) -> CommandRun {
    TestDir::new().lango(args)
}
