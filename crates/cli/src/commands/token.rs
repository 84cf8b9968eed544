//! `lango token …`: who may come in over HTTP.

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_app::new_token_value;
use lango_domain::event::Principal;
use lango_store::{AccessToken, SqliteStore};
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, TokenCommand, TokenCreateArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// No name is longer.
const MAX_NAME: usize = 64;

pub fn run(global: &GlobalArgs, command: &TokenCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let store = setting.store.open()?;
    let now = Timestamp::now();
    runtime()?.block_on(async {
        match command {
            TokenCommand::Create(wish) => create(&store, wish, now).await,
            TokenCommand::List => list(&store, now).await,
            TokenCommand::Revoke { names } => revoke(&store, names).await,
        }
    })
}

async fn create(
    store: &SqliteStore,
    wish: &TokenCreateArgs,
    now: Timestamp,
) -> Result<CommandOutput, CliError> {
    let principal = wish.principal.as_deref().unwrap_or(&wish.name);
    for name in [&wish.name, principal] {
        check_name(name)?;
    }
    let token = AccessToken {
        name: wish.name.clone(),
        principal: Principal::new(principal),
        scopes: wish.scope.iter().copied().collect(),
        created: now,
        expires: wish
            .expires
            .as_deref()
            .map(|time| parse_expiry(time, now))
            .transpose()?,
        used: None,
    };
    let value = new_token_value()?;
    store.add_token(token.clone(), &value).await?;
    let plain = format!(
        "{}\n{}\n",
        value.expose(),
        styled(
            DIM,
            "Keep it: only its hash is kept here, and it is not shown again."
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
    let message = format!("a token's name has 1 to {MAX_NAME} letters, digits and . _ @ -");
    Err(CliError::usage(message).with_hint("lango token create my-laptop"))
}

/// The end of a time that begins now.
fn parse_expiry(time: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let wrong = || {
        CliError::usage(format!("`{time}` is no time")).with_hint("for example 30d, 12h, 45m or 2w")
    };
    let unit = time.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = time[..time.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = number
        .checked_mul(seconds)
        .filter(|seconds| *seconds > 0)
        .ok_or_else(wrong)?;
    let span = jiff::Span::new()
        .try_seconds(seconds)
        .map_err(|_| wrong())?;
    now.checked_add(span).map_err(|_| wrong())
}

async fn list(store: &SqliteStore, now: Timestamp) -> Result<CommandOutput, CliError> {
    let tokens = store.tokens().await?;
    let mut plain = String::new();
    for token in &tokens {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let day = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
        let used = token
            .used
            .map_or("never used".to_owned(), |at| format!("used {}", day(at)));
        let end = match token.expires {
            Some(at) if token.is_expired(now) => format!(", expired {}", day(at)),
            Some(at) => format!(", until {}", day(at)),
            None => String::new(),
        };
        let of = if token.principal.as_str() == token.name {
            String::new()
        } else {
            format!(" as {}", token.principal)
        };
        let rest = styled(DIM, format!("{used}{end}"));
        let _ = writeln!(
            plain,
            "{}{of}  {}  {rest}",
            styled(NAME, &token.name),
            scopes.join(", ")
        );
    }
    if tokens.is_empty() {
        plain.push_str("No tokens yet: `lango token create NAME` makes one.\n");
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

async fn revoke(store: &SqliteStore, names: &[String]) -> Result<CommandOutput, CliError> {
    for name in names {
        store.revoke_token(name).await?;
    }
    let plain = format!(
        "Revoked: {}. A server that runs knows within a second.\n",
        names.join(", ")
    );
    Ok(CommandOutput::new(plain, json!({ "revoked": names })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    #[test]
    fn times_are_read_or_refused() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(parse_expiry("30d", now).unwrap(), now + (30 * 24).hours());
        assert_eq!(parse_expiry("2w", now).unwrap(), now + (14 * 24).hours());
        for wrong in [
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
            assert!(parse_expiry(wrong, now).is_err(), "{wrong}");
        }
    }
}
