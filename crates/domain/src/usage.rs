//! Totals of model usage by turn, delegation and agent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Content;
use crate::event::{Event, EventBody, Usage};
use lango_text::sanitize::one_line;

/// The length of the request in a usage summary.
const MAX_REQUEST_CHARS: usize = 60;

#[derive(Clone, Debug, Default)]
pub struct UsageSummary {
    turns: Vec<TurnUsageSummary>,
}

/// The usage of a turn.
#[derive(Clone, Debug, Default)]
pub struct TurnUsageSummary {
    pub id: String,
    pub request: String,
    /// Totals by branch and agent.
    pub rows: BTreeMap<(String, String), UsageTotals>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageTotals {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    cost: f64,
    /// Calls with an unknown price. With any, the total cost is unknown.
    unpriced: u64,
}

impl UsageTotals {
    pub fn add(&mut self, usage: &Usage) {
        self.merge(&Self {
            calls: 1,
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            cost: usage.cost_usd.unwrap_or(0.0),
            unpriced: u64::from(usage.cost_usd.is_none()),
        });
    }

    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }

    /// Returns the cost in US dollars, if every price is known.
    pub fn cost(&self) -> Option<f64> {
        (self.unpriced == 0 && self.calls > 0).then_some(self.cost)
    }

    fn to_json(&self) -> Value {
        json!({ "calls": self.calls, "tokens_in": self.input, "tokens_out": self.output, "cached": self.cached, "cost_usd": self.cost() })
    }

    fn to_json_with(&self, key: &str, name: &str) -> Value {
        let mut json = self.to_json();
        json[key] = name.into();
        json
    }
}

impl TurnUsageSummary {
    pub fn total(&self) -> UsageTotals {
        let mut total = UsageTotals::default();
        self.rows.values().for_each(|totals| total.merge(totals));
        total
    }

    fn to_json(&self) -> Value {
        let mut json = self.total().to_json_with("turn", &self.id);
        let rows = self.rows.iter().map(|((branch, agent), totals)| {
            let mut json = totals.to_json_with("agent", agent);
            json["branch"] = branch.as_str().into();
            json
        });
        json["delegations"] = rows.collect();
        json
    }
}

impl UsageSummary {
    pub fn add(&mut self, event: &Event) {
        let turn = self.turn(event.turn.as_str(), "");
        match &event.body {
            EventBody::User(Content { text, .. }) => {
                turn.request = one_line(text).chars().take(MAX_REQUEST_CHARS).collect()
            }
            EventBody::Usage(usage) => {
                turn.rows
                    .entry((event.branch.to_string(), event.author.to_string()))
                    .or_default()
                    .add(usage);
            }
            _ => {}
        }
    }

    /// Adds the usage of a branch and agent in a turn. Turns must be added one after the other.
    pub fn add_usage(&mut self, turn: &str, request: &str, row: (String, String), usage: &Usage) {
        self.turn(turn, request)
            .rows
            .entry(row)
            .or_default()
            .add(usage);
    }

    pub fn turns(&self) -> &[TurnUsageSummary] {
        &self.turns
    }

    pub fn total(&self) -> UsageTotals {
        let mut total = UsageTotals::default();
        self.turns
            .iter()
            .for_each(|turn| total.merge(&turn.total()));
        total
    }

    /// Returns the totals overall, by agent and by turn.
    pub fn to_json(&self) -> Value {
        let mut agents: BTreeMap<&str, UsageTotals> = BTreeMap::new();
        for ((_, agent), totals) in self.turns.iter().flat_map(|turn| &turn.rows) {
            agents.entry(agent).or_default().merge(totals);
        }
        let mut json = self.total().to_json();
        json["by_agent"] = agents
            .iter()
            .map(|(agent, totals)| totals.to_json_with("agent", agent))
            .collect();
        json["by_turn"] = self.turns.iter().map(TurnUsageSummary::to_json).collect();
        json
    }

    fn turn(&mut self, id: &str, request: &str) -> &mut TurnUsageSummary {
        if self.turns.last().is_none_or(|last| last.id != id) {
            let (id, request) = (id.to_owned(), request.to_owned());
            self.turns.push(TurnUsageSummary {
                id,
                request,
                rows: BTreeMap::new(),
            });
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }
}
