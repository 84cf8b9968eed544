//! `lango token …`: access tokens for the HTTP server.

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_app::new_token_value;
use lango_domain::Stores;
use lango_domain::access_tokens::AccessToken;
use lango_domain::automation::{JobEdit, RunQuery, RunState};
use lango_domain::event::Principal;
use lango_text::sanitize::one_line;
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, TokenCommand, TokenCreateArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The maximum length of a token name, in bytes.
const MAX_NAME: usize = 64;
/// More than a principal can have open at a time.
const MAX_STOPPED_RUNS: usize = 10_000;

pub fn run(global: &GlobalArgs, command: &TokenCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let now = Timestamp::now();
    runtime()?.block_on(async {
        match command {
            TokenCommand::Create(args) => create(&stores, args, now).await,
            TokenCommand::List => list(&stores, now).await,
            TokenCommand::Revoke { names } => revoke(&stores, names).await,
        }
    })
}

async fn create(
    stores: &Stores,
    args: &TokenCreateArgs,
    now: Timestamp,
) -> Result<CommandOutput, CliError> {
    let principal = args.principal.as_deref().unwrap_or(&args.name);
    for name in [&args.name, principal] {
        check_name(name)?;
    }
    let token = AccessToken {
        name: args.name.clone(),
        principal: Principal::new(principal),
        scopes: args.scope.iter().copied().collect(),
        created: now,
        expires: args
            .expires
            .as_deref()
            .map(|time| parse_expiry(time, now))
            .transpose()?,
        used: None,
    };
    let value = new_token_value()?;
    stores
        .access_tokens
        .add_token(token.clone(), &value)
        .await?;
    let plain = format!(
        "{}\n{}\n",
        value.expose(),
        styled(
            DIM,
            "Save this token now: only its hash is stored, and it is not shown again."
        )
    );
    let mut json = token_json(&token, now);
    json["token"] = value.expose().into();
    Ok(CommandOutput::new(plain, json))
}

fn check_name(name: &str) -> Result<(), CliError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    let message = format!(
        "invalid token name `{}`; expected 1 to {MAX_NAME} letters, digits and . _ @ -",
        one_line(name)
    );
    Err(CliError::usage(message).with_hint("for example `lango token create my-laptop`"))
}

/// Returns the time at which a lifetime that begins now ends.
fn parse_expiry(time: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let invalid = || {
        CliError::usage(format!("invalid lifetime `{time}`"))
            .with_hint("for example 30d, 12h, 45m or 2w")
    };
    let unit = time.chars().last().ok_or_else(invalid)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(invalid()),
    };
    let number: i64 = time[..time.len() - 1].parse().map_err(|_| invalid())?;
    let seconds = number
        .checked_mul(seconds)
        .filter(|seconds| *seconds > 0)
        .ok_or_else(invalid)?;
    let span = jiff::Span::new()
        .try_seconds(seconds)
        .map_err(|_| invalid())?;
    now.checked_add(span).map_err(|_| invalid())
}

async fn list(stores: &Stores, now: Timestamp) -> Result<CommandOutput, CliError> {
    let tokens = stores.access_tokens.tokens().await?;
    let mut plain = String::new();
    for token in &tokens {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let format_time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
        let used = token.used.map_or("never used".to_owned(), |at| {
            format!("used {}", format_time(at))
        });
        let expiry = match token.expires {
            Some(at) if token.is_expired(now) => format!(", expired {}", format_time(at)),
            Some(at) => format!(", until {}", format_time(at)),
            None => String::new(),
        };
        let owner = if token.principal.as_str() == token.name {
            String::new()
        } else {
            format!(" as {}", token.principal)
        };
        let rest = styled(DIM, format!("{used}{expiry}"));
        let _ = writeln!(
            plain,
            "{}{owner}  {}  {rest}",
            styled(NAME, &token.name),
            scopes.join(", ")
        );
    }
    if tokens.is_empty() {
        plain.push_str("There are no tokens. Create one with `lango token create NAME`.\n");
    }
    let items: Vec<Value> = tokens.iter().map(|token| token_json(token, now)).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

fn token_json(token: &AccessToken, now: Timestamp) -> Value {
    json!({
        "name": token.name,
        "principal": token.principal,
        "scopes": token.scopes,
        "created": token.created,
        "expires": token.expires,
        "used": token.used,
        "valid": !token.is_expired(now),
    })
}

async fn revoke(stores: &Stores, names: &[String]) -> Result<CommandOutput, CliError> {
    let before = stores.access_tokens.tokens().await?;
    for name in names {
        stores.access_tokens.revoke_token(name).await?;
    }
    let left = stores.access_tokens.tokens().await?;
    let mut stopped = StoppedWork::default();
    for token in before.iter().filter(|token| names.contains(&token.name)) {
        let has_other = left.iter().any(|other| other.principal == token.principal);
        if !has_other {
            stopped.add(stop_work(stores, &token.principal).await?);
        }
    }
    let mut plain = format!(
        "Revoked: {}. A running server rejects them within a second.\n",
        names.join(", ")
    );
    let StoppedWork { jobs, runs } = stopped;
    if jobs + runs > 0 {
        let _ = writeln!(plain, "Paused jobs: {jobs}. Cancelled runs: {runs}.");
    }
    let json = json!({ "revoked": names, "paused_jobs": jobs, "cancelled_runs": runs });
    Ok(CommandOutput::new(plain, json))
}

/// The numbers of jobs and runs that end with a token.
#[derive(Default)]
struct StoppedWork {
    jobs: usize,
    runs: usize,
}

impl StoppedWork {
    fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.runs += other.runs;
    }
}

/// Pauses the jobs of a principal that has no token left, and cancels its runs: its access has ended.
async fn stop_work(stores: &Stores, principal: &Principal) -> Result<StoppedWork, CliError> {
    let (store, mut stopped) = (&stores.automation, StoppedWork::default());
    for job in store.jobs(principal).await? {
        if job.enabled && job.next_due.is_some() {
            let paused = JobEdit {
                enabled: Some(false),
                next_due: None,
                ..JobEdit::default()
            };
            store.edit_job(principal, job.id, paused).await?;
            stopped.jobs += 1;
        }
    }
    let open = RunQuery {
        states: vec![RunState::Queued, RunState::Waiting, RunState::Running],
        ..RunQuery::newest(principal.clone(), MAX_STOPPED_RUNS)
    };
    for run in store.runs(open).await? {
        let is_cancelled = store.cancel_run(principal, run.id, Timestamp::now());
        stopped.runs += usize::from(is_cancelled.await?);
    }
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    #[test]
    fn parses_valid_lifetimes() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(parse_expiry("30d", now).unwrap(), now + (30 * 24).hours());
        assert_eq!(parse_expiry("2w", now).unwrap(), now + (14 * 24).hours());
        for invalid in [
            "",
            "d",
            "0d",
            "-1d",
            "30",
            "30 days",
            "99999999999999999999d",
            "9999999999999w",
            "일",
        ] {
            assert!(parse_expiry(invalid, now).is_err(), "{invalid}");
        }
    }
}
