//! `lango usage`: token usage and cost.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use lango_domain::event::{Event, Principal, SessionId};
use lango_domain::usage::{UsageSummary, UsageTotals};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::GlobalArgs;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// Reports the usage of a file of events (`lango ask --json > FILE`), or of standard input.
pub fn report_file(file: &Path) -> Result<CommandOutput, CliError> {
    let read_error =
        |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", file.display()));
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(read_error)?)
    };
    let mut summary = UsageSummary::default();
    for (index, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(read_error)?;
        // Streamed text is not an event.
        let is_provisional = ["delta", "printed"]
            .iter()
            .any(|kind| line.contains(&format!("\"type\":\"{kind}\"")));
        if line.trim().is_empty() || is_provisional {
            continue;
        }
        let event: Event = serde_json::from_str(&line).map_err(|error| {
            CliError::usage(format!(
                "{}:{}: invalid event: {error}",
                file.display(),
                index + 1
            ))
        })?;
        summary.add(&event);
    }
    Ok(CommandOutput::new(
        format_usage(&summary),
        summary.to_json(),
    ))
}

/// Reports the usage of one stored session, or of all of them.
pub fn report_store(
    global: &GlobalArgs,
    session: Option<String>,
) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let session = session.map(SessionId::new);
    let rows = runtime()?.block_on(async {
        if let Some(session) = &session {
            stores.catalog.session(&Principal::local(), session).await?;
        }
        stores
            .catalog
            .usage(&Principal::local(), session.as_ref())
            .await
    })?;
    let mut summary = UsageSummary::default();
    for row in rows {
        let request = row
            .session
            .map_or("a deleted session".to_owned(), |session| {
                session.to_string()
            });
        summary.add_usage(&row.turn, &request, (row.branch, row.agent), &row.usage);
    }
    Ok(with_damage_warnings(
        CommandOutput::new(format_usage(&summary), summary.to_json()),
        &stores,
    ))
}

/// Formats the usage as text.
pub fn format_usage(summary: &UsageSummary) -> String {
    let mut text = String::new();
    for turn in summary.turns() {
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
        for (index, ((_, author), totals)) in turn.rows.iter().enumerate() {
            let _ = writeln!(
                text,
                "{}{author}  {}",
                tree_prefix(&depths, index),
                styled(DIM, format_totals(totals))
            );
        }
    }
    let _ = writeln!(text, "Total: {}", format_totals(&summary.total()));
    text
}

fn format_totals(totals: &UsageTotals) -> String {
    let cost = totals
        .cost()
        .map_or("price unknown".to_owned(), |cost| format!("${cost:.4}"));
    let calls = if totals.calls == 1 {
        "1 call".to_owned()
    } else {
        format!("{} calls", totals.calls)
    };
    format!(
        "{calls}, {} in ({} cached), {} out, {cost}",
        totals.input, totals.cached, totals.output
    )
}

/// Returns the branch lines of a tree row, given the depth of each row.
fn tree_prefix(depths: &[usize], index: usize) -> String {
    let has_sibling = |level: usize| {
        let later = depths[index + 1..].iter();
        later
            .take_while(|depth| **depth >= level)
            .any(|depth| *depth == level)
    };
    let prefix: String = (0..depths[index])
        .map(|level| if has_sibling(level) { "│   " } else { "    " })
        .collect();
    format!(
        "{prefix}{}",
        if has_sibling(depths[index]) {
            "├── "
        } else {
            "└── "
        }
    )
}
