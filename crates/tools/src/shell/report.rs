//! Formats the result of a command for the model.

use lango_domain::ToolError;

use super::ShellParts;
use super::process::{CommandEnd, CommandResult};
use crate::sandbox::{ExceededLimit, SandboxError, SandboxMode};

/// Error prefix if file access of commands cannot be confined.
pub const SANDBOX_UNAVAILABLE: &str = "sandbox_unavailable";

const SUCCESS: &str = "exit code 0 after ";
const NO_OUTPUT_END: &str = " s, no output";

pub fn format_result(parts: &ShellParts, result: &CommandResult) -> Result<String, ToolError> {
    let seconds = result.duration.as_secs_f64();
    let output = format_output(result);
    let failed = |summary: String| {
        Err(ToolError(format!(
            "{summary}\n{output}{}",
            hint(parts, result)
        )))
    };
    match &result.end {
        CommandEnd::Exited(0) if output.is_empty() => {
            Ok(format!("{SUCCESS}{seconds:.2}{NO_OUTPUT_END}"))
        }
        CommandEnd::Exited(0) => Ok(format!("{SUCCESS}{seconds:.2} s\n{output}")),
        CommandEnd::Exited(code) => failed(format!("exit code {code} after {seconds:.2} s")),
        CommandEnd::TimedOut => failed(format!(
            "stopped: it timed out after {seconds:.0} s; use a longer timeout, or exec_start for long-running commands"
        )),
        CommandEnd::Stopped(reason) => failed(format!(
            "stopped after {seconds:.2} s: it used {}",
            format_limit(parts, *reason)
        )),
        CommandEnd::Failed(SandboxError::Unconfined(reason)) => Err(ToolError(format!(
            "{SANDBOX_UNAVAILABLE}: this system cannot confine the file access of commands ({reason}), so nothing was run. Only the user \
             can decide to run commands without a sandbox: tools.exec.sandbox=off"
        ))),
        CommandEnd::Failed(SandboxError::Other(reason)) => {
            Err(ToolError(format!("nothing was run: {reason}")))
        }
        CommandEnd::Lost => failed("the sandbox ended before the command".to_owned()),
    }
}

/// Returns what a successful command printed.
pub fn printed_output(report: &str) -> &str {
    let Some(rest) = report.strip_prefix(SUCCESS) else {
        return report;
    };
    match rest.split_once('\n') {
        Some((_, output)) => output,
        None if rest.ends_with(NO_OUTPUT_END) => "",
        None => report,
    }
}

fn format_output(result: &CommandResult) -> String {
    let marker = match &result.id {
        Some(id) => {
            format!(
                "[… {} bytes left out; exec_output reads them: id {id} …]",
                result.capture.omitted_bytes()
            )
        }
        None => format!("[… {} bytes left out …]", result.capture.omitted_bytes()),
    };
    result.capture.text(&marker)
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
            "more disk space than {} MiB (tools.exec.diskMb)",
            settings.disk_mb
        ),
    }
}

/// Describes the restrictions of the sandbox, a likely cause of unexpected failures.
fn hint(parts: &ShellParts, result: &CommandResult) -> String {
    let settings = &parts.settings;
    let program_note = if result.starts_programs {
        ""
    } else {
        "\n[read-only commands cannot start other programs]"
    };
    if settings.mode() == SandboxMode::Off {
        return program_note.to_owned();
    }
    let network = if settings.network {
        ""
    } else {
        "; there is no network (tools.exec.network)"
    };
    format!(
        "\n[sandbox: only {} can be changed; only that, system folders and tools.exec.read can be read{network}]{program_note}",
        parts.workspace.root().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_output_has_no_exit_code() {
        for (report, expected) in [
            ("exit code 0 after 0.07 s\n{\"a\": 1}\n", "{\"a\": 1}\n"),
            ("exit code 0 after 0.07 s, no output", ""),
            (
                "exit code 0 after 0.07 s\nexit code 0 after 1 s\nx",
                "exit code 0 after 1 s\nx",
            ),
            ("something else", "something else"),
        ] {
            assert_eq!(printed_output(report), expected);
        }
    }
}
