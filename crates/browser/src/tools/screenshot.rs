//! `browser_screenshot`: a picture of a page.

use std::sync::Arc;

use lango_domain::content::Attachment;
use lango_domain::{Content, Intent, Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::extract::{outgoing_or_nothing, reading_intent};
use super::navigate::{open_intent, open_page};
use super::{find_element, page_output, session_of};
use crate::navigator::Navigator;
use crate::page::screenshot::ScreenshotOptions;

const MAX_WIDTH: u32 = 1280;
/// The folder of the workspace for pictures that the user wants to keep.
const FOLDER: &str = "screenshots";

#[derive(Deserialize, JsonSchema)]
struct ScreenshotArgs {
    /// The whole page instead of what is visible.
    full_page: Option<bool>,
    /// A reference such as e12: a picture of that element.
    r#ref: Option<String>,
    /// Draw the references next to their elements.
    refs: Option<bool>,
    #[schemars(description = "Width in pixels, up to 1280.")]
    width: Option<u32>,
    /// An address to open first; the open page if left out.
    url: Option<String>,
    /// True if the user wants the picture as a file of the workspace.
    save: Option<bool>,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let description = "Takes a picture of the page that is open, or of the one at `url`. Use it for what text cannot \
        tell: layout, charts, canvases. The outline costs less.";
    let (run, describe) = (Arc::clone(navigator), Arc::clone(navigator));
    Tool::new(
        "browser_screenshot",
        description,
        Safety::Safe,
        move |context: ToolContext, args: ScreenshotArgs| {
            let navigator = Arc::clone(&run);
            async move { screenshot(&navigator, &context, args).await }
        },
    )
    .with_intent(move |context, args: ScreenshotArgs| {
        let intent = match &args.url {
            Some(url) => open_intent(&describe, &context, url),
            None => Ok(reading_intent("takes a picture of the open page")),
        };
        let intent = intent.map(|intent| saving_intent(intent, args.save.unwrap_or_default()));
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(|args: ScreenshotArgs| outgoing_or_nothing(args.url))
    .with_phrases([
        "(take|make|) [a] screenshot [of] [the] (page|site|website|) [at] {url:word} {save=\"true\"}",
        "(take|make) a (screenshot|picture) of [the] (page|site|website|) [at] {url:word} {save=\"true\"}",
        "(take|make) a screenshot (of the open page|of the current page|of the page|) {save=\"true\"}",
    ])
}

/// Adds the saving of the picture to an intent.
fn saving_intent(intent: Intent, is_saved: bool) -> Intent {
    if !is_saved {
        return intent;
    }
    Intent {
        level: intent.level.max(Safety::Moderate),
        shows: format!("{}\nsaves the picture in the folder {FOLDER}", intent.shows),
        ..intent
    }
}

/// Saves a picture in the workspace and returns the line that says so.
async fn save(
    navigator: &Navigator,
    context: &ToolContext,
    name: &str,
    bytes: Vec<u8>,
) -> Result<String, ToolError> {
    let missing = || ToolError("files cannot be saved here".to_owned());
    let save = navigator.storage.save_file.clone().ok_or_else(missing)?;
    let (context, path) = (context.clone(), format!("{FOLDER}/{name}"));
    let saved = tokio::task::spawn_blocking(move || save(&context, &path, bytes)).await;
    let saved = saved.map_err(|_panic| ToolError("the picture cannot be saved".to_owned()))?;
    saved
        .map(|path| format!("saved {path}\n"))
        .map_err(ToolError)
}

async fn screenshot(
    navigator: &Navigator,
    context: &ToolContext,
    args: ScreenshotArgs,
) -> Result<ToolOutput, ToolError> {
    let mut session = session_of(navigator, context).await;
    if let Some(url) = &args.url {
        let url = navigator.check_address(url, &context.typed_addresses)?;
        open_page(navigator, &mut session, &url).await?;
    }
    let page = session.page()?;
    page.check_usable()?;
    let element = match &args.r#ref {
        Some(text) => Some(find_element(&page, text).await?),
        None => None,
    };
    let options = ScreenshotOptions {
        is_full_page: args.full_page.unwrap_or_default(),
        element,
        has_refs: args.refs.unwrap_or_default(),
        width: args.width.map(|width| width.clamp(100, MAX_WIDTH)),
        is_png: false,
    };
    page.check_shows_no_secret(&context.redactor).await?;
    let bytes = page.screenshot(options).await?;
    let host = url::Url::parse(&page.url()).ok();
    let host = host.and_then(|url| url.host_str().map(str::to_owned));
    let name = format!("{}.webp", host.unwrap_or_else(|| "page".to_owned()));
    let saved = match args.save.unwrap_or_default() {
        true => save(navigator, context, &name, bytes.clone()).await?,
        false => String::new(),
    };
    let picture = Attachment::new(bytes, &name, Some("image/webp"))
        .map_err(|error| ToolError(error.to_string()))?;
    let mut content = Content::from(format!("url: {}\n{saved}", page.url()));
    content.attach(picture);
    Ok(page_output(&page, content))
}
