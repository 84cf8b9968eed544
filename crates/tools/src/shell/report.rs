//! What came of a command, in words for a model.

use lango_domain::ToolError;

use super::ShellParts;
use super::running::{End, Ended};
use crate::sandbox::{Failed, Mode, Reason};

/// A command that could not be kept from other files.
pub const UNAVAILABLE: &str = "sandbox_unavailable";

pub fn worded(parts: &ShellParts, ended: &Ended) -> Result<String, ToolError> {
    let seconds = ended.took.as_secs_f64();
    let output = output(ended);
    let failed = |what: String| Err(ToolError(format!("{what}\n{output}{}", hint(parts, ended))));
    match &ended.end {
        End::Exited(0) if output.is_empty() => Ok(format!("exit code 0 after {seconds:.2} s, no output")),
        End::Exited(0) => Ok(format!("exit code 0 after {seconds:.2} s\n{output}")),
        End::Exited(code) => failed(format!("exit code {code} after {seconds:.2} s")),
        End::TimedOut => failed(format!(
            "stopped: it had not ended after {seconds:.0} s. A longer timeout helps, or exec_start for what runs for long"
        )),
        End::Stopped(reason) => {
            failed(format!("stopped after {seconds:.2} s: it took {}", too_much(parts, *reason)))
        }
        End::Failed(Failed::Unconfined(why)) => Err(ToolError(format!(
            "{UNAVAILABLE}: on this system commands cannot be kept from other files ({why}), so nothing was run. Only the user \
             can decide to run commands without a sandbox: tools.exec.sandbox=off"
        ))),
        End::Failed(Failed::Other(why)) => Err(ToolError(format!("nothing was run: {why}"))),
        End::Lost => failed("the sandbox ended before the command did".to_owned()),
    }
}

fn output(ended: &Ended) -> String {
    let mark = match &ended.id {
        Some(id) => {
            format!("[… {} bytes left out; exec_output reads them: id {id} …]", ended.capture.left_out())
        }
        None => format!("[… {} bytes left out …]", ended.capture.left_out()),
    };
    ended.capture.text(&mark)
}

fn too_much(parts: &ShellParts, reason: Reason) -> String {
    let settings = &parts.settings;
    match reason {
        Reason::Memory => format!("more memory than {} MiB (tools.exec.memoryMb)", settings.memory_mb),
        Reason::Processes => format!("more than {} processes (tools.exec.processes)", settings.processes),
        Reason::Disk => format!("more of the disk than {} MiB (tools.exec.diskMb)", settings.disk_mb),
    }
}

/// What the sandbox keeps back is the likely reason of a failure that looks odd otherwise.
fn hint(parts: &ShellParts, ended: &Ended) -> String {
    let settings = &parts.settings;
    let alone =
        if ended.starts_programs { "" } else { "\n[it only reads, so it can start no other program]" };
    if settings.mode() == Mode::Off {
        return alone.to_owned();
    }
    let network = if settings.network { "" } else { "; there is no network (tools.exec.network)" };
    format!(
        "\n[sandbox: only {} can be changed; only that, system folders and tools.exec.read can be read{network}]{alone}",
        parts.workspace.root().display()
    )
}
