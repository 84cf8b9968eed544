//! `lango browser …`: pages as the navigator sees them.

use std::path::Path;

use lango_app::capability::browser::{BrowserError, ScreenshotOptions};
use lango_app::{navigator_for_user, policy_for_user_url};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKey;
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{BrowserCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput};

pub fn run(global: &GlobalArgs, command: &BrowserCommand) -> Result<CommandOutput, CliError> {
    match command {
        BrowserCommand::Open { url, headful } => {
            let context = load(global, *headful)?;
            runtime()?.block_on(open(&context, url))
        }
        BrowserCommand::Screenshot {
            url,
            output,
            full_page,
            headful,
        } => {
            let context = load(global, *headful)?;
            let options = ScreenshotOptions {
                is_full_page: *full_page,
                is_png: output
                    .extension()
                    .is_none_or(|extension| extension != "webp"),
                ..ScreenshotOptions::default()
            };
            runtime()?.block_on(save_screenshot(&context, url, output, options))
        }
    }
}

fn load(global: &GlobalArgs, headful: bool) -> Result<CommandContext, CliError> {
    let extra = headful.then(|| "browser.headless=false".to_owned());
    CommandContext::load_with(global, extra.into_iter().collect())
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
