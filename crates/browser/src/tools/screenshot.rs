//! `browser_screenshot`: a picture of a page.

use std::sync::Arc;

use lango_domain::content::Attachment;
use lango_domain::{Content, Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::extract::{outgoing_or_nothing, reading_intent};
use super::navigate::{open_intent, open_page};
use super::{find_element, page_output, session_of};
use crate::navigator::Navigator;
use crate::page::screenshot::ScreenshotOptions;

const MAX_WIDTH: u32 = 1280;

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
    .with_intent(move |_, args: ScreenshotArgs| {
        let intent = match &args.url {
            Some(url) => open_intent(&describe, url),
            None => Ok(reading_intent("takes a picture of the open page")),
        };
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(|args: ScreenshotArgs| outgoing_or_nothing(args.url))
    .with_phrases([
        "[take|make] [a] screenshot [of] [the] (page|site|website|) [at] {url:word}",
        "(take|make) a (screenshot|picture) of [the] (page|site|website|) [at] {url:word}",
        "(take|make) a screenshot [of the (open|current) page]",
    ])
}

async fn screenshot(
    navigator: &Navigator,
    context: &ToolContext,
    args: ScreenshotArgs,
) -> Result<ToolOutput, ToolError> {
    let mut session = session_of(navigator, context).await;
    if let Some(url) = &args.url {
        let url = navigator.check_address(url)?;
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
    let picture = Attachment::new(bytes, &name, Some("image/webp"))
        .map_err(|error| ToolError(error.to_string()))?;
    let mut content = Content::from(format!("url: {}\n", page.url()));
    content.attach(picture);
    Ok(page_output(&page, content))
}
