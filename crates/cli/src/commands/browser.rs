//! `lango browser …`: pages as the navigator sees them.

use std::path::Path;

use lango_app::capability::browser::{BrowserError, ProfileName, ScreenshotOptions, StoredProfile};
use lango_app::{browser_profiles, navigator_for_user, policy_for_user_url};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKey;
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{BrowserCommand, BrowserProfileCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput};

pub fn run(global: &GlobalArgs, command: &BrowserCommand) -> Result<CommandOutput, CliError> {
    match command {
        BrowserCommand::Open {
            url,
            headful,
            profile,
        } => {
            let context = load(global, *headful, profile.as_deref())?;
            runtime()?.block_on(open(&context, url))
        }
        BrowserCommand::Screenshot {
            url,
            output,
            full_page,
            headful,
            profile,
        } => {
            let context = load(global, *headful, profile.as_deref())?;
            let options = ScreenshotOptions {
                is_full_page: *full_page,
                is_png: output
                    .extension()
                    .is_none_or(|extension| extension != "webp"),
                ..ScreenshotOptions::default()
            };
            runtime()?.block_on(save_screenshot(&context, url, output, options))
        }
        BrowserCommand::Profile(command) => profile(&load(global, false, None)?, command),
    }
}

fn load(
    global: &GlobalArgs,
    headful: bool,
    profile: Option<&str>,
) -> Result<CommandContext, CliError> {
    let mut extra = Vec::new();
    if headful {
        extra.push("browser.headless=false".to_owned());
    }
    if let Some(profile) = profile {
        let name = ProfileName::parse(profile).map_err(CliError::usage)?;
        extra.push(format!("browser.profile={}", name.as_str()));
    }
    CommandContext::load_with(global, extra)
}

fn profile(
    context: &CommandContext,
    command: &BrowserProfileCommand,
) -> Result<CommandOutput, CliError> {
    let missing = || CliError::usage("there is no data folder; set HOME or LANGO_HOME");
    let store = browser_profiles(&context.environment).ok_or_else(missing)?;
    let principal = Principal::local();
    let failed = |error: std::io::Error| CliError::store(error.to_string());
    match command {
        BrowserProfileCommand::List => {
            let profiles = store.list(&principal).map_err(failed)?;
            let line = |one: &StoredProfile| {
                let (count, sites) = (one.cookies, one.sites.join(", "));
                format!("{}: {count} cookies of {sites}\n", one.name)
            };
            let text = match profiles.is_empty() {
                true => "There is no profile.\n".to_owned(),
                false => profiles.iter().map(line).collect(),
            };
            Ok(CommandOutput::new(text, json!({ "profiles": profiles })))
        }
        BrowserProfileCommand::Remove { name } => {
            let name = ProfileName::parse(name).map_err(CliError::usage)?;
            if !store.remove(&principal, &name).map_err(failed)? {
                let message = format!("there is no profile {}", name.as_str());
                return Err(CliError::usage(message).with_hint("run `lango browser profile list`"));
            }
            let text = format!("Removed the profile {}.\n", name.as_str());
            Ok(CommandOutput::new(
                text,
                json!({ "removed": name.as_str() }),
            ))
        }
    }
}

fn session_key() -> SessionKey {
    SessionKey {
        session: SessionId::new("command"),
        principal: Principal::local(),
    }
}

async fn open(context: &CommandContext, url: &str) -> Result<CommandOutput, CliError> {
    let policy = policy_for_user_url(url).await;
    let navigator = navigator_for_user(&context.loaded, &context.environment, policy);
    let outline = navigator.outline(&session_key(), url).await;
    navigator.close().await;
    let outline = outline.map_err(failure)?;
    let json = json!({ "url": url, "outline": outline });
    Ok(CommandOutput::new(outline, json))
}

async fn save_screenshot(
    context: &CommandContext,
    url: &str,
    file: &Path,
    options: ScreenshotOptions,
) -> Result<CommandOutput, CliError> {
    let policy = policy_for_user_url(url).await;
    let navigator = navigator_for_user(&context.loaded, &context.environment, policy);
    let picture = navigator.picture(&session_key(), url, options).await;
    navigator.close().await;
    let picture = picture.map_err(failure)?;
    std::fs::write(file, &picture)
        .map_err(|error| CliError::usage(format!("cannot write {}: {error}", file.display())))?;
    let text = format!("{} ({} bytes)\n", file.display(), picture.len());
    let json = json!({ "url": url, "file": file, "bytes": picture.len() });
    Ok(CommandOutput::new(text, json))
}

fn failure(error: BrowserError) -> CliError {
    match error {
        BrowserError::Unavailable(message) => {
            CliError::usage(message).with_hint("run `lango doctor`")
        }
        error => CliError::remote(error.to_string()),
    }
}
