//! `lango audit`: tool calls with their approval and outcome.

use std::fmt::Write as _;

use lango_domain::audit::AuditEntry;
use lango_domain::event::{Principal, SessionId};
use lango_text::sanitize::{escape_hidden_chars, one_line};
use serde_json::{Value, json};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{AuditArgs, GlobalArgs};
use crate::output::{CliError, CommandOutput, DIM, ERROR, NAME, styled};
use crate::turn_printer::args_line;

pub fn run(global: &GlobalArgs, args: &AuditArgs) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let session = args.session.as_deref().map(SessionId::new);
    let entries = runtime()?.block_on(async {
        if let Some(session) = &session {
            stores.catalog.session(&Principal::local(), session).await?;
        }
        stores
            .catalog
            .audit(&Principal::local(), session.as_ref(), args.limit.get())
            .await
    })?;
    let mut plain = String::new();
    for entry in &entries {
        let time = entry.at.strftime("%Y-%m-%d %H:%M:%S");
        let _ = writeln!(plain, "{}  {}", styled(DIM, time), entry_line(entry));
    }
    if entries.is_empty() {
        plain.push_str("No tool calls yet.\n");
    }
    let output = CommandOutput::new(
        plain,
        json!({ "items": entries.iter().map(entry_json).collect::<Vec<_>>() }),
    );
    Ok(with_damage_warnings(output, &stores))
}

fn entry_line(entry: &AuditEntry) -> String {
    let (decision, by) = entry.decision();
    let by = by.map_or(String::new(), |by| format!(" by {by}"));
    let decision = match decision {
        "auto" | "approved" => styled(DIM, format!("{decision}{by}")),
        _ => styled(ERROR, format!("{decision}{by}")),
    };
    let (agent, tool) = (
        one_line(&entry.agent.to_string()),
        one_line(&escape_hidden_chars(&entry.tool)),
    );
    format!(
        "{agent} {} {}  {decision}  {}",
        styled(NAME, tool),
        args_line(&entry.args),
        entry.outcome_code()
    )
}

fn entry_json(entry: &AuditEntry) -> Value {
    let (decision, by) = entry.decision();
    json!({
        "at": entry.at,
        "session": entry.session,
        "principal": Principal::local(),
        "agent": entry.agent,
        "tool": entry.tool,
        "args": entry.args,
        "level": entry.level,
        "decision": decision,
        "by": by,
        "outcome": entry.outcome_code(),
    })
}
