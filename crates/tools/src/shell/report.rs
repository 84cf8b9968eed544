//! What came of a command, in words for a model.

use lango_domain::ToolError;

use super::ShellParts;
use super::process::{CommandEnd, CommandResult};
use crate::sandbox::{ExceededLimit, SandboxError, SandboxMode};

/// A command that could not be kept from other files.
pub const SANDBOX_UNAVAILABLE: &str = "sandbox_unavailable";

pub fn format_result(parts: &ShellParts, ended: &CommandResult) -> Result<String, ToolError> {
    let seconds = ended.duration.as_secs_f64();
    let output = format_output(ended);
    let failed = |what: String| Err(ToolError(format!("{what}\n{output}{}", hint(parts, ended))));
    match &ended.end {
        CommandEnd::Exited(0) if output.is_empty() => {
            Ok(format!("exit code 0 after {seconds:.2} s, no output"))
        }
        CommandEnd::Exited(0) => Ok(format!("exit code 0 after {seconds:.2} s\n{output}")),
        CommandEnd::Exited(code) => failed(format!("exit code {code} after {seconds:.2} s")),
        CommandEnd::TimedOut => failed(format!(
            "stopped: it had not ended after {seconds:.0} s. A longer timeout helps, or exec_start for what runs for long"
        )),
        CommandEnd::Stopped(reason) => failed(format!(
            "stopped after {seconds:.2} s: it took {}",
            format_limit(parts, *reason)
        )),
        CommandEnd::Failed(SandboxError::Unconfined(why)) => Err(ToolError(format!(
            "{SANDBOX_UNAVAILABLE}: on this system commands cannot be kept from other files ({why}), so nothing was run. Only the user \
             can decide to run commands without a sandbox: tools.exec.sandbox=off"
        ))),
        CommandEnd::Failed(SandboxError::Other(why)) => {
            Err(ToolError(format!("nothing was run: {why}")))
        }
        CommandEnd::Lost => failed("the sandbox ended before the command did".to_owned()),
    }
}

fn format_output(ended: &CommandResult) -> String {
    let mark = match &ended.id {
        Some(id) => {
            format!(
                "[… {} bytes left out; exec_output reads them: id {id} …]",
                ended.capture.omitted_bytes()
            )
        }
        None => format!("[… {} bytes left out …]", ended.capture.omitted_bytes()),
    };
    ended.capture.text(&mark)
}

fn format_limit(parts: &ShellParts, reason: ExceededLimit) -> String {
    let settings = &parts.settings;
    match reason {
        ExceededLimit::Memory => format!(
            "more memory than {} MiB (tools.exec.memoryMb)",
            settings.memory_mb
        ),
        ExceededLimit::Processes => format!(
            "more than {} processes (tools.exec.processes)",
            settings.processes
        ),
        ExceededLimit::Disk => format!(
            "more of the disk than {} MiB (tools.exec.diskMb)",
            settings.disk_mb
        ),
    }
}

/// What the sandbox keeps back is the likely reason of a failure that looks odd otherwise.
fn hint(parts: &ShellParts, ended: &CommandResult) -> String {
    let settings = &parts.settings;
    let alone = if ended.starts_programs {
        ""
    } else {
        "\n[it only reads, so it can start no other program]"
    };
    if settings.mode() == SandboxMode::Off {
        return alone.to_owned();
    }
    let network = if settings.network {
        ""
    } else {
        "; there is no network (tools.exec.network)"
    };
    format!(
        "\n[sandbox: only {} can be changed; only that, system folders and tools.exec.read can be read{network}]{alone}",
        parts.workspace.root().display()
    )
}
