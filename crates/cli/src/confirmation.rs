//! Asks a yes-or-no question at the terminal.

use std::io::{IsTerminal as _, Write as _};

use crate::output::{CliError, print_stderr};

/// Returns true if a person can see a question and answer it.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints the details and the question, and returns true only if the answer is yes.
pub fn confirm(details: &str, question: &str) -> Result<bool, CliError> {
    print_stderr(details.trim_end());
    let _ = write!(anstream::stderr(), "{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
