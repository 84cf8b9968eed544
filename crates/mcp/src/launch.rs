//! Starts the program of a server through the sandbox helper, which ends all of its processes when Lango
//! is gone, also behind a shell or a package runner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lango_domain::secret::Secret;
use lango_tools::sandbox::{
    OUTER_ARG, SandboxError, SandboxMessage, SandboxSpec, new_temp_path, readable_etc,
};
use lango_tools::shell::ExecSettings;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bounded_lines::{BoundedLines, MAX_MESSAGE_BYTES};
use crate::private_file;
use crate::program_folders::{find_program, program_folders};
use crate::settings::McpServerSettings;
use crate::tool_name::hex;

/// Variables that every program gets, if they are set.
const VARIABLES: [&str; 3] = ["LANG", "LANGUAGE", "TZ"];
/// Time for the helper to report how a program ended.
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Variables with folders for files of the program.
const FOLDER_VARIABLES: [&str; 6] = [
    "HOME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// The parts of this process that every start needs.
#[derive(Clone, Debug)]
pub struct LaunchEnvironment {
    /// The program that is the sandbox helper.
    pub helper: PathBuf,
    pub variables: BTreeMap<String, String>,
    /// Lango's own folders, which no program can access.
    pub hidden: Vec<PathBuf>,
    /// The sandbox and the limits of commands.
    pub exec: ExecSettings,
    pub temp_folder: PathBuf,
}

/// Where a server is: a program with resolved paths, or a URL.
#[derive(Clone, Debug)]
pub enum ServerAddress {
    Program(ProgramAddress),
    Url {
        url: url::Url,
        token: Option<Secret>,
        headers: BTreeMap<String, Secret>,
    },
}

#[derive(Clone, Debug)]
pub struct ProgramAddress {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, Secret>,
    cwd: Option<PathBuf>,
    network: bool,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl ServerAddress {
    /// Reads the settings of a server. `resolve` makes a path of the settings absolute.
    pub fn new(
        settings: &McpServerSettings,
        resolve: impl Fn(&Path) -> PathBuf,
    ) -> Result<Self, String> {
        let resolve_all = |paths: &[PathBuf]| paths.iter().map(|path| resolve(path)).collect();
        match (&settings.command, &settings.url) {
            (Some(command), None) if !command.trim().is_empty() => {
                Ok(Self::Program(ProgramAddress {
                    command: command.clone(),
                    args: settings.args.clone(),
                    env: settings.env.clone(),
                    cwd: settings.cwd.as_deref().map(&resolve),
                    network: settings.network,
                    read: resolve_all(&settings.read),
                    write: resolve_all(&settings.write),
                }))
            }
            (None, Some(url)) => {
                let url = url::Url::parse(url).map_err(|error| format!("`url`: {error}"))?;
                if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
                    return Err("`url` must start with http:// or https://".to_owned());
                }
                Ok(Self::Url {
                    url,
                    token: settings.token.clone(),
                    headers: settings.headers.clone(),
                })
            }
            (Some(_), Some(_)) => Err("it has both `command` and `url`; keep one".to_owned()),
            _ => Err("it has neither `command` nor `url`".to_owned()),
        }
    }

    /// Identifies what is started, with which access. The values of secrets do not matter.
    pub fn fingerprint(&self) -> String {
        let all = match self {
            Self::Program(program) => json!({
                "command": program.command,
                "args": program.args,
                "env": program.env.keys().collect::<Vec<_>>(),
                "cwd": program.cwd,
                "network": program.network,
                "read": program.read,
                "write": program.write,
            }),
            Self::Url { url, headers, .. } => json!({
                "url": url.as_str(),
                "headers": headers.keys().collect::<Vec<_>>(),
            }),
        };
        hex(&Sha256::digest(all.to_string().as_bytes()))
    }
}

/// A running program. It ends, with all of its processes, when `life` is dropped.
pub(crate) struct ServerProcess {
    pub input: ChildStdin,
    pub output: BoundedLines<ChildStdout>,
    pub life: ProcessLife,
}

/// Watches a program.
pub(crate) struct ProcessLife {
    end: EndReason,
    watcher: JoinHandle<()>,
}

/// The reason why a program ended, once it has.
#[derive(Clone)]
struct EndReason(Arc<watch::Sender<Option<String>>>);

impl EndReason {
    /// Keeps the first reason.
    fn set(&self, reason: impl Into<String>) {
        self.0.send_if_modified(|end| {
            let is_first = end.is_none();
            end.get_or_insert_with(|| reason.into());
            is_first
        });
    }
}

impl ProcessLife {
    /// Returns the reason why the program ended, if it has.
    pub fn end(&self) -> Option<String> {
        self.end.0.borrow().clone()
    }

    /// Waits a moment for the reason, since the output of a program closes before the helper reports.
    pub async fn wait_for_end(&self) -> Option<String> {
        let mut receiver = self.end.0.subscribe();
        let ended = receiver.wait_for(Option::is_some);
        let ended = tokio::time::timeout(REPORT_TIMEOUT, ended).await;
        ended.ok()?.ok()?.clone()
    }
}

impl Drop for ProcessLife {
    fn drop(&mut self) {
        // Drops the reader of the helper's messages, whereupon the helper ends everything.
        self.watcher.abort();
    }
}

impl ProgramAddress {
    pub fn has_network(&self) -> bool {
        self.network
    }

    /// Starts the program. What it writes to its standard error goes to `log`.
    pub(crate) async fn start(
        &self,
        environment: &LaunchEnvironment,
        log: &Path,
    ) -> Result<ServerProcess, String> {
        let spec = self.sandbox_spec(environment, log)?;
        if let Some(folder) = log.parent() {
            private_file::create_folder(folder).map_err(|error| error.to_string())?;
        }
        let frame = spec.to_frame()?;
        let mut command = Command::new(&environment.helper);
        command
            .arg(OUTER_ARG)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(messages)) = pipes else {
            return Err("it has no pipes".to_owned());
        };
        let end = EndReason(Arc::new(watch::Sender::new(None)));
        let watcher = tokio::spawn(watch(child, BufReader::new(messages).lines(), end.clone()));
        let life = ProcessLife {
            end: end.clone(),
            watcher,
        };
        input
            .write_all(&frame)
            .await
            .map_err(|error| life.end().unwrap_or_else(|| error.to_string()))?;
        let output = BoundedLines::new(output, MAX_MESSAGE_BYTES, move || {
            end.set(format!(
                "it sent a message of more than {} MiB",
                MAX_MESSAGE_BYTES / 1024 / 1024
            ));
        });
        Ok(ServerProcess {
            input,
            output,
            life,
        })
    }

    fn sandbox_spec(
        &self,
        environment: &LaunchEnvironment,
        log: &Path,
    ) -> Result<SandboxSpec, String> {
        let variable = |name: &str| {
            environment
                .variables
                .get(name)
                .filter(|text| !text.is_empty())
        };
        let path = variable("PATH").map_or(DEFAULT_PATH, String::as_str);
        let temp = new_temp_path(&environment.temp_folder).map_err(|error| error.to_string())?;
        let folder = self.cwd.clone().unwrap_or_else(|| temp.clone());
        let program = find_program(&self.command, path, &folder)
            .ok_or_else(|| format!("the program `{}` was not found", self.command))?;
        let home = variable("HOME").map(Path::new);
        let real = |path: &PathBuf| {
            path.canonicalize()
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut read = program_folders(&program, &self.args, (path, home));
        for path in self.read.iter().chain(&self.cwd) {
            read.push(real(path)?);
        }
        let mut write: Vec<PathBuf> = self.write.iter().map(real).collect::<Result<_, _>>()?;
        write.push(temp.clone());
        let is_own = |path: &PathBuf| environment.hidden.iter().any(|own| path.starts_with(own));
        if let Some(own) = read.iter().chain(&write).find(|path| is_own(path)) {
            return Err(format!("{} is a folder of Lango itself", own.display()));
        }
        let mut argv = vec![program.display().to_string()];
        argv.extend(self.args.iter().cloned());
        Ok(SandboxSpec {
            argv,
            folder,
            env: self.variables(environment, path, &temp),
            read,
            public: readable_etc(),
            write,
            temp: Some(temp),
            hidden: environment.hidden.clone(),
            network: self.network,
            starts_programs: true,
            mode: environment.exec.mode(),
            limits: environment.exec.limits(),
            error_log: Some(log.to_path_buf()),
        })
    }

    /// Returns the whole environment of the program: a few variables, and those of the settings.
    fn variables(
        &self,
        environment: &LaunchEnvironment,
        path: &str,
        temp: &Path,
    ) -> Vec<(String, String)> {
        let mut variables = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        let is_passed = |name: &str| VARIABLES.contains(&name) || name.starts_with("LC_");
        let passed = environment
            .variables
            .iter()
            .filter(|(name, _)| is_passed(name));
        variables.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
        for name in FOLDER_VARIABLES {
            variables.insert(name.to_owned(), temp.display().to_string());
        }
        let own = self.env.iter();
        variables.extend(own.map(|(name, value)| (name.clone(), value.expose().to_owned())));
        variables.into_iter().collect()
    }
}

/// Reads the messages of the helper until the program ends.
async fn watch(mut child: Child, mut messages: Lines<BufReader<ChildStderr>>, end: EndReason) {
    while let Ok(Some(line)) = messages.next_line().await {
        match serde_json::from_str(&line) {
            Ok(SandboxMessage::Failed(
                SandboxError::Unconfined(reason) | SandboxError::Other(reason),
            )) => end.set(reason),
            Ok(SandboxMessage::Ended { code }) => {
                end.set(format!("its program exited with code {code}"));
            }
            Ok(SandboxMessage::Stopped(limit)) => {
                end.set(format!("its program exceeded the limit of {limit:?}").to_lowercase());
            }
            Ok(SandboxMessage::Confined(_)) | Err(_) => {}
        }
    }
    end.set("its program was ended");
    let _ = child.wait().await;
}
