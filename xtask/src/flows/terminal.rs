//! A pseudo-terminal whose user gives every question the same answer.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::case::TerminalAnswer;

/// End of the line that prompts for an answer.
const PROMPT_END: &str = "[n] no:";

/// Attaches the command to a pseudo-terminal with a simulated user, which lives as long as the terminal is open.
pub fn attach_terminal(command: &mut Command, approve: TerminalAnswer) -> Result<()> {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("cannot open a terminal")?;
    grantpt(&own)?;
    unlockpt(&own)?;
    let name = ptsname(&own, Vec::new())?.into_string()?;
    let side = || {
        File::options()
            .read(true)
            .write(true)
            .open(&name)
            .context("cannot open a terminal")
    };
    command
        .stdin(Stdio::from(side()?))
        .stderr(Stdio::from(side()?));
    let own = File::from(own);
    thread::spawn(move || answer_prompts(own, approve));
    Ok(())
}

/// Returns when the other side is closed.
fn answer_prompts(mut own: File, approve: TerminalAnswer) -> Option<()> {
    let mut buffer = [0; 4096];
    let mut shown = String::new();
    loop {
        let length = own.read(&mut buffer).ok().filter(|length| *length > 0)?;
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        if let Some(at) = shown.rfind(PROMPT_END) {
            let question = &shown[shown[..at].rfind('\n').unwrap_or(0)..at];
            let letter = match approve {
                _ if question.contains("[v]") => "v\n",
                TerminalAnswer::Pattern if question.contains("[p]") => "p\n",
                TerminalAnswer::Same | TerminalAnswer::Pattern => "s\n",
            };
            shown.clear();
            own.write_all(letter.as_bytes()).ok()?;
        }
    }
}
