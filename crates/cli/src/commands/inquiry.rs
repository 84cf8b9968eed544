//! `lango inquiry …`: questions that wait for the user's answer.

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_app::capability::memory::inquiries::inquiry_line;
use lango_domain::Stores;
use lango_domain::event::Principal;
use lango_domain::inquiries::InquiryStatus;
use lango_text::sanitize::strip_control_chars;
use serde_json::json;

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, InquiryCommand};
use crate::output::{CliError, CommandOutput, DIM, styled};

pub fn run(global: &GlobalArgs, command: &InquiryCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let output = runtime()?.block_on(async {
        match command {
            InquiryCommand::List { all } => list(&stores, *all).await,
            InquiryCommand::Dismiss { ids } => dismiss(&stores, ids).await,
        }
    })?;
    Ok(with_damage_warnings(output, &stores))
}

async fn list(stores: &Stores, all: bool) -> Result<CommandOutput, CliError> {
    let principal = Principal::local();
    let inquiries = if all {
        stores.inquiries.inquiries(&principal).await
    } else {
        stores.inquiries.pending(&principal).await
    }?;
    let mut plain = String::new();
    for inquiry in &inquiries {
        let state = match (inquiry.status, &inquiry.answer) {
            (InquiryStatus::Pending, _) => format!("asked {} times", inquiry.offers),
            (status, Some(answer)) => format!("{status}: {}", strip_control_chars(answer)),
            (status, None) => status.to_string(),
        };
        let _ = writeln!(
            plain,
            "{} {}",
            strip_control_chars(&inquiry_line(inquiry)),
            styled(DIM, state)
        );
    }
    if inquiries.is_empty() {
        plain.push_str("No inquiry is pending.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": inquiries })))
}

async fn dismiss(stores: &Stores, ids: &[u64]) -> Result<CommandOutput, CliError> {
    let principal = Principal::local();
    let pending = stores.inquiries.pending(&principal).await?;
    if let Some(unknown) = ids
        .iter()
        .find(|id| !pending.iter().any(|inquiry| inquiry.id == **id))
    {
        let error = CliError::usage(format!("no inquiry {unknown} is pending"));
        return Err(error.with_hint("`lango inquiry list` lists the pending inquiries"));
    }
    for id in ids {
        stores
            .inquiries
            .dismiss(&principal, *id, Timestamp::now())
            .await?;
    }
    let dismissed: Vec<String> = ids.iter().map(u64::to_string).collect();
    Ok(CommandOutput::new(
        format!("Dismissed: {}.\n", dismissed.join(", ")),
        json!({ "dismissed": ids }),
    ))
}
