//! Child processes of a case and their output.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A server process that is killed when the case ends.
pub struct PeerServer {
    child: Child,
    pub port: u16,
}

impl PeerServer {
    /// Starts the server and waits until it listens.
    pub fn start(make: impl FnOnce(u16) -> Command) -> Result<Self> {
        let port = free_port()?;
        let mut command = make(port);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let mut server = Self { child, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.child.try_wait()? {
                let mut words = String::new();
                if let Some(mut stderr) = server.child.stderr.take() {
                    stderr.read_to_string(&mut words)?;
                }
                bail!("{command:?} ended ({status}):\n{words}");
            }
            if started.elapsed() > START_TIMEOUT {
                bail!("{command:?} does not listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program and returns the JSON lines it prints. Fails if the program does.
pub fn run_json_lines(command: &mut Command) -> Result<Vec<Value>> {
    json_lines_of_exit(command, 0)
}

/// Runs a program that ends with this exit code, and returns the JSON lines it prints.
pub fn json_lines_of_exit(command: &mut Command, code: i32) -> Result<Vec<Value>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let (printed, told) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.code() != Some(code) {
        bail!("{command:?}: {}\n{printed}\n{told}", output.status);
    }
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
        .collect()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
