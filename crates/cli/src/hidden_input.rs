//! Values that are typed at the terminal without being shown, or come from a pipe.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use lango_app::capability::vault::{MAX_SECRET_BYTES, SecretPrompt};
use lango_domain::secret::Secret;
use lango_text::sanitize::one_line;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::output::CliError;

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// The input of a command that asks for passphrases: the terminal, or the lines of a pipe.
pub enum HiddenInput {
    Terminal,
    /// The lines, once they are read: a command that asks nothing leaves its input alone.
    Pipe(Option<VecDeque<Secret>>),
}

impl HiddenInput {
    pub fn open() -> Self {
        match std::io::stdin().is_terminal() {
            true => Self::Terminal,
            false => Self::Pipe(None),
        }
    }

    /// Asks for a value. The error says what was cancelled.
    pub async fn ask(&mut self, question: &str) -> Result<Secret, CliError> {
        let lines = match self {
            Self::Terminal => {
                let typed = ask_hidden(question).await;
                return typed.ok_or_else(|| CliError::cancelled("cancelled; nothing was changed"));
            }
            Self::Pipe(Some(lines)) => lines,
            Self::Pipe(lines) => {
                let text = read_stdin()?;
                lines.insert(text.expose().lines().map(Secret::new).collect())
            }
        };
        lines.pop_front().ok_or_else(|| {
            CliError::usage(format!("there is no terminal to ask for: {question}"))
                .with_hint("pass it as a line of standard input")
        })
    }

    /// Asks for a new passphrase, twice at a terminal.
    pub async fn ask_new(&mut self, question: &str) -> Result<Secret, CliError> {
        let first = self.ask(question).await?;
        if matches!(self, Self::Terminal) && self.ask("The same again:").await? != first {
            return Err(CliError::usage(
                "the two are not the same; nothing was changed",
            ));
        }
        Ok(first)
    }
}

/// Reads a value from standard input that is not a terminal, without one line break at its end.
pub fn read_stdin() -> Result<Secret, CliError> {
    read_value(std::io::stdin().lock(), "standard input")
}

/// Reads a value, without one line break at its end.
pub fn read_value(source: impl std::io::Read, name: &str) -> Result<Secret, CliError> {
    let mut text = String::new();
    source
        .take(MAX_SECRET_BYTES as u64 + 3)
        .read_to_string(&mut text)
        .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(value.strip_suffix('\r').unwrap_or(value)))
}

/// The prompt for tools that store secrets.
pub struct TerminalPrompt;

impl SecretPrompt for TerminalPrompt {
    fn ask(&self, question: String) -> BoxFuture<'_, Option<Secret>> {
        async move { ask_hidden(&question).await }.boxed()
    }
}

/// Returns true if a value can be typed without being shown.
pub fn has_terminal() -> bool {
    open_terminal().is_some_and(|terminal| tcgetattr(&terminal).is_ok())
}

fn open_terminal() -> Option<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()
}

/// Asks at the terminal. Returns `None` if there is none, or if the user cancels with Ctrl-C or Ctrl-D.
pub async fn ask_hidden(question: &str) -> Option<Secret> {
    let mut terminal = open_terminal()?;
    let hidden = HiddenEcho::start(&terminal)?;
    let _ = write!(terminal, "{} ", one_line(question)).and_then(|()| terminal.flush());
    let mut line = HiddenLine::default();
    let end = loop {
        let mut ready = [PollFd::new(&terminal, PollFlags::IN)];
        // Polls instead of blocking in a read, so that a cancelled turn takes no further input.
        if poll(&mut ready, Some(&Timespec::default())).ok()? == 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        }
        let mut bytes = [0; 1024];
        let length = rustix::io::read(&terminal, &mut bytes).ok()?;
        if length == 0 {
            break LineEnd::Cancelled;
        }
        if let Some(end) = line.feed(&bytes[..length]) {
            break end;
        }
    };
    drop(hidden);
    let _ = writeln!(terminal);
    match end {
        LineEnd::Entered => String::from_utf8(line.bytes).ok().map(Secret::new),
        LineEnd::Cancelled => None,
    }
}

/// Hides what is typed, until it is dropped.
struct HiddenEcho {
    terminal: File,
    before: Termios,
}

impl HiddenEcho {
    fn start(terminal: &File) -> Option<Self> {
        let before = tcgetattr(terminal).ok()?;
        let mut hidden = before.clone();
        // Signals are off as well: a process that ends at Ctrl-C would leave the echo off.
        hidden
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Discards input that was typed before the question appeared.
        tcsetattr(terminal, OptionalActions::Flush, &hidden).ok()?;
        Some(Self {
            terminal: terminal.as_fd().try_clone_to_owned().ok()?.into(),
            before,
        })
    }
}

impl Drop for HiddenEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// A line as it is typed.
#[derive(Default)]
struct HiddenLine {
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Entered,
    Cancelled,
}

impl HiddenLine {
    /// Adds typed bytes: Enter ends, Ctrl-C and Ctrl-D cancel, Backspace and Ctrl-U delete.
    fn feed(&mut self, typed: &[u8]) -> Option<LineEnd> {
        for byte in typed {
            match byte {
                b'\r' | b'\n' => return Some(LineEnd::Entered),
                3 | 4 => return Some(LineEnd::Cancelled),
                8 | 0x7f => self.delete_char(),
                0x15 => self.bytes.clear(),
                byte if self.bytes.len() <= MAX_SECRET_BYTES => self.bytes.push(*byte),
                _ => {}
            }
        }
        None
    }

    fn delete_char(&mut self) {
        while let Some(byte) = self.bytes.pop() {
            let is_continuation = byte & 0xc0 == 0x80;
            if !is_continuation {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_line_can_be_edited() {
        let mut line = HiddenLine::default();
        assert_eq!(line.feed("x\u{15}caf\u{e9}\u{7f}e".as_bytes()), None);
        assert_eq!(line.feed(b"!\x08\n rest"), Some(LineEnd::Entered));
        assert_eq!(line.bytes, b"cafe");
        assert_eq!(line.feed(b"abc\x03"), Some(LineEnd::Cancelled));
    }

    #[test]
    fn one_line_break_is_removed() {
        for (given, expected) in [
            ("value\n", "value"),
            ("value\r\n", "value"),
            ("value\n\n", "value\n"),
            (" value ", " value "),
            ("", ""),
        ] {
            let value = read_value(given.as_bytes(), "test").unwrap();
            assert_eq!(value.expose(), expected);
        }
        assert!(read_value(&b"\xff\xfe"[..], "test").is_err());
    }
}
