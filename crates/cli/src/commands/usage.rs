//! `lango usage`: what a conversation took, from its events.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use lango_domain::event::{Event, Principal, SessionId};
use lango_domain::usage::{UsageSummary, UsageTotals};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::GlobalArgs;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The bill of a file of events (`lango ask --json > FILE`), or of standard input.
pub fn report_file(file: &Path) -> Result<CommandOutput, CliError> {
    let cannot =
        |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", file.display()));
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(cannot)?)
    };
    let mut bill = UsageSummary::default();
    for (at, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(cannot)?;
        // Provisional text has no place in a bill, and is no event.
        let is_provisional = ["delta", "printed"]
            .iter()
            .any(|kind| line.contains(&format!("\"type\":\"{kind}\"")));
        if line.trim().is_empty() || is_provisional {
            continue;
        }
        let event: Event = serde_json::from_str(&line).map_err(|error| {
            CliError::usage(format!(
                "{}:{}: this is no event: {error}",
                file.display(),
                at + 1
            ))
        })?;
        bill.add(&event);
    }
    Ok(CommandOutput::new(format_usage(&bill), bill.to_json()))
}

/// The bill of what is kept: of one session, or of everything.
pub fn report_store(
    global: &GlobalArgs,
    session: Option<String>,
) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let store = setting.store.open()?;
    let session = session.map(SessionId::new);
    let rows = runtime()?.block_on(async {
        if let Some(session) = &session {
            store.session(&Principal::local(), session).await?;
        }
        store.usage(&Principal::local(), session.as_ref()).await
    })?;
    let mut bill = UsageSummary::default();
    for row in rows {
        let request = row
            .session
            .map_or("a deleted session".to_owned(), |session| {
                session.to_string()
            });
        bill.add_usage(&row.turn, &request, (row.branch, row.agent), &row.usage);
    }
    Ok(with_damage_warnings(
        CommandOutput::new(format_usage(&bill), bill.to_json()),
        &store,
    ))
}

/// The bill as people read it.
pub fn format_usage(bill: &UsageSummary) -> String {
    let mut text = String::new();
    for turn in bill.turns() {
        let _ = writeln!(
            text,
            "{}  {}",
            styled(NAME, &turn.request),
            styled(DIM, format_totals(&turn.total()))
        );
        let depths: Vec<usize> = turn
            .rows
            .keys()
            .map(|(branch, _)| branch.matches('/').count())
            .collect();
        for (at, ((_, author), sum)) in turn.rows.iter().enumerate() {
            let _ = writeln!(
                text,
                "{}{author}  {}",
                tree_prefix(&depths, at),
                styled(DIM, format_totals(sum))
            );
        }
    }
    let _ = writeln!(text, "All in all: {}", format_totals(&bill.total()));
    text
}

fn format_totals(sum: &UsageTotals) -> String {
    let cost = sum
        .cost()
        .map_or("price unknown".to_owned(), |cost| format!("${cost:.4}"));
    let calls = if sum.calls == 1 {
        "1 call".to_owned()
    } else {
        format!("{} calls", sum.calls)
    };
    format!(
        "{calls}, {} in ({} cached), {} out, {cost}",
        sum.input, sum.cached, sum.output
    )
}

/// The lines before a row of a tree, given how deep each row is.
fn tree_prefix(depths: &[usize], at: usize) -> String {
    let has_sibling = |level: usize| {
        let later = depths[at + 1..].iter();
        later
            .take_while(|depth| **depth >= level)
            .any(|depth| *depth == level)
    };
    let above: String = (0..depths[at])
        .map(|level| if has_sibling(level) { "│   " } else { "    " })
        .collect();
    format!(
        "{above}{}",
        if has_sibling(depths[at]) {
            "├── "
        } else {
            "└── "
        }
    )
}
