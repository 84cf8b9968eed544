//! `lango usage`: what a conversation took, from its events.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use lango_domain::usage::{UsageReport, UsageTotals};
use lango_domain::event::{Event, Principal, SessionId};

use super::{CommandContext, naming_damage, runtime};
use crate::args::Global;
use crate::output::{DIM, CliError, NAME, CommandOutput, styled};

/// The bill of a file of events (`lango ask --json > FILE`), or of standard input.
pub fn of_file(file: &Path) -> Result<CommandOutput, CliError> {
    let cannot = |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", file.display()));
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(cannot)?)
    };
    let mut bill = UsageReport::default();
    for (at, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(cannot)?;
        // Provisional text has no place in a bill, and is no event.
        let is_provisional =
            ["delta", "printed"].iter().any(|kind| line.contains(&format!("\"type\":\"{kind}\"")));
        if line.trim().is_empty() || is_provisional {
            continue;
        }
        let event: Event = serde_json::from_str(&line).map_err(|error| {
            CliError::usage(format!("{}:{}: this is no event: {error}", file.display(), at + 1))
        })?;
        bill.add(&event);
    }
    Ok(CommandOutput::new(plain(&bill), bill.json()))
}

/// The bill of what is kept: of one session, or of everything.
pub fn of_store(global: &Global, session: Option<String>) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::read(global)?;
    let store = setting.stores.open()?;
    let session = session.map(SessionId::new);
    let rows = runtime()?.block_on(async {
        if let Some(session) = &session {
            store.session(&Principal::local(), session).await?;
        }
        store.usage(&Principal::local(), session.as_ref()).await
    })?;
    let mut bill = UsageReport::default();
    for row in rows {
        let request = row.session.map_or("a deleted session".to_owned(), |session| session.to_string());
        bill.add_usage(&row.turn, &request, (row.branch, row.agent), &row.usage);
    }
    Ok(naming_damage(CommandOutput::new(plain(&bill), bill.json()), &store))
}

/// The bill as people read it.
pub fn plain(bill: &UsageReport) -> String {
    let mut text = String::new();
    for turn in bill.turns() {
        let _ = writeln!(text, "{}  {}", styled(NAME, &turn.request), styled(DIM, sum_plain(&turn.total())));
        let depths: Vec<usize> = turn.rows.keys().map(|(branch, _)| branch.matches('/').count()).collect();
        for (at, ((_, author), sum)) in turn.rows.iter().enumerate() {
            let _ = writeln!(text, "{}{author}  {}", stem(&depths, at), styled(DIM, sum_plain(sum)));
        }
    }
    let _ = writeln!(text, "All in all: {}", sum_plain(&bill.total()));
    text
}

fn sum_plain(sum: &UsageTotals) -> String {
    let cost = sum.cost().map_or("price unknown".to_owned(), |cost| format!("${cost:.4}"));
    let calls = if sum.calls == 1 { "1 call".to_owned() } else { format!("{} calls", sum.calls) };
    format!("{calls}, {} in ({} cached), {} out, {cost}", sum.input, sum.cached, sum.output)
}

/// The lines before a row of a tree, given how deep each row is.
fn stem(depths: &[usize], at: usize) -> String {
    let has_sibling = |level: usize| {
        let later = depths[at + 1..].iter();
        later.take_while(|depth| **depth >= level).any(|depth| *depth == level)
    };
    let above: String =
        (0..depths[at]).map(|level| if has_sibling(level) { "│   " } else { "    " }).collect();
    format!("{above}{}", if has_sibling(depths[at]) { "├── " } else { "└── " })
}
