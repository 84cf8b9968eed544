//! `lango usage`: what a conversation took, from its events.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use lango_app::open_store;
use lango_domain::event::{Body, Event, Principal, SessionId, Usage};
use serde_json::{Value, json};

use super::{Setting, runtime};
use crate::args::Global;
use crate::output::{DIM, Failure, NAME, Output, styled};

/// The bill of a file of events (`lango ask --json > FILE`), or of standard input.
pub fn of_file(file: &Path) -> Result<Output, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(cannot)?)
    };
    let mut bill = Bill::default();
    for (at, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(cannot)?;
        // Provisional text has no place in a bill, and is no event.
        let is_provisional =
            ["delta", "printed"].iter().any(|kind| line.contains(&format!("\"type\":\"{kind}\"")));
        if line.trim().is_empty() || is_provisional {
            continue;
        }
        let event: Event = serde_json::from_str(&line).map_err(|error| {
            Failure::usage(format!("{}:{}: this is no event: {error}", file.display(), at + 1))
        })?;
        bill.add(&event);
    }
    Ok(Output::new(bill.plain(), bill.json()))
}

/// The bill of what is kept: of one session, or of everything.
pub fn of_store(global: &Global, session: Option<String>) -> Result<Output, Failure> {
    let setting = Setting::read(global)?;
    let store = open_store(&setting.loaded, &setting.environment)?;
    let session = session.map(SessionId::new);
    let rows = runtime()?.block_on(async {
        if let Some(session) = &session {
            store.session(&Principal::local(), session).await?;
        }
        store.usage(&Principal::local(), session.as_ref()).await
    })?;
    let mut bill = Bill::default();
    for row in rows {
        let request = row.session.map_or("a deleted session".to_owned(), |session| session.to_string());
        bill.add_usage(&row.turn, &request, (row.branch, row.agent), &row.usage);
    }
    Ok(Output::new(bill.plain(), bill.json()))
}

/// Usage, added up turn by turn, delegation by delegation.
#[derive(Default)]
pub struct Bill {
    turns: Vec<Turn>,
}

/// A turn: its id, its request, and what each agent took in each branch.
type Turn = (String, String, BTreeMap<(String, String), Sum>);

#[derive(Clone, Default)]
struct Sum {
    calls: u64,
    input: u64,
    output: u64,
    cached: u64,
    cost: f64,
    /// Calls whose price is not known: then no sum of money would be true.
    unpriced: u64,
}

impl Sum {
    fn add(&mut self, usage: &Usage) {
        self.calls += 1;
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cached = self.cached.saturating_add(usage.cached);
        self.cost += usage.cost_usd.unwrap_or(0.0);
        self.unpriced += u64::from(usage.cost_usd.is_none());
    }

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }

    fn cost(&self) -> Option<f64> {
        (self.unpriced == 0 && self.calls > 0).then_some(self.cost)
    }

    fn json(&self) -> Value {
        json!({ "calls": self.calls, "tokens_in": self.input, "tokens_out": self.output, "cached": self.cached, "cost_usd": self.cost() })
    }

    fn plain(&self) -> String {
        let cost = self.cost().map_or("price unknown".to_owned(), |cost| format!("${cost:.4}"));
        let calls = if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) };
        format!("{calls}, {} in ({} cached), {} out, {cost}", self.input, self.cached, self.output)
    }
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

impl Bill {
    pub fn add(&mut self, event: &Event) {
        let turn = event.turn.to_string();
        if self.turns.last().is_none_or(|(last, ..)| *last != turn) {
            self.turns.push((turn, String::new(), BTreeMap::new()));
        }
        let Some((_, request, rows)) = self.turns.last_mut() else { return };
        match &event.body {
            Body::User { text } => *request = lango_domain::text::one_line(text).chars().take(60).collect(),
            Body::Usage(usage) => {
                rows.entry((event.branch.to_string(), event.author.to_string())).or_default().add(usage);
            }
            _ => {}
        }
    }

    fn add_usage(&mut self, turn: &str, request: &str, place: (String, String), usage: &Usage) {
        if self.turns.last().is_none_or(|(last, ..)| last != turn) {
            self.turns.push((turn.to_owned(), request.to_owned(), BTreeMap::new()));
        }
        if let Some((_, _, rows)) = self.turns.last_mut() {
            rows.entry(place).or_default().add(usage);
        }
    }

    fn total(&self) -> Sum {
        let mut total = Sum::default();
        self.turns.iter().flat_map(|(_, _, rows)| rows.values()).for_each(|sum| total.merge(sum));
        total
    }

    pub fn plain(&self) -> String {
        let mut text = String::new();
        for (_, request, rows) in &self.turns {
            let mut turn = Sum::default();
            rows.values().for_each(|sum| turn.merge(sum));
            let _ = writeln!(text, "{}  {}", styled(NAME, request), styled(DIM, turn.plain()));
            let depths: Vec<usize> = rows.keys().map(|(branch, _)| branch.matches('/').count()).collect();
            for (at, ((_, author), sum)) in rows.iter().enumerate() {
                let _ = writeln!(text, "{}{author}  {}", stem(&depths, at), styled(DIM, sum.plain()));
            }
        }
        let _ = writeln!(text, "All in all: {}", self.total().plain());
        text
    }

    fn json(&self) -> Value {
        let mut agents: BTreeMap<&str, Sum> = BTreeMap::new();
        for ((_, author), sum) in self.turns.iter().flat_map(|(_, _, rows)| rows) {
            agents.entry(author).or_default().merge(sum);
        }
        let named = |key: &str, name: &str, sum: &Sum| {
            let mut json = sum.json();
            json[key] = name.into();
            json
        };
        let by_agent: Vec<Value> = agents.iter().map(|(agent, sum)| named("agent", agent, sum)).collect();
        let by_turn: Vec<Value> = self
            .turns
            .iter()
            .map(|(turn, _, rows)| {
                let mut sum = Sum::default();
                rows.values().for_each(|row| sum.merge(row));
                let mut json = named("turn", turn, &sum);
                let rows = rows.iter().map(|((branch, author), sum)| {
                    let mut json = named("agent", author, sum);
                    json["branch"] = branch.as_str().into();
                    json
                });
                json["delegations"] = rows.collect();
                json
            })
            .collect();
        let mut json = self.total().json();
        json["by_agent"] = by_agent.into();
        json["by_turn"] = by_turn.into();
        json
    }
}
