//! `browser_navigate`: opens a page.

use std::sync::Arc;

use lango_domain::{
    Destination, Intent, OutgoingData, Safety, Tool, ToolContext, ToolError, ToolOutput,
};
use lango_text::{sanitize::strip_control_chars, token_estimate};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::{page_output, session_of};
use crate::error::{BrowserError, Result};
use crate::navigator::{NAVIGATION_LIMIT, Navigator};
use crate::page::outline::OUTLINE_TOKENS;
use crate::session_pages::SessionPages;
use crate::tab_state::{ApprovedDownload, Download, origin_of};

const PDF_TOKENS: usize = 6_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct NavigateArgs {
    /// The address, beginning with https:// or http://.
    url: String,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let description = "Opens a page in the browser and gives back an outline of what is visible: text, and controls \
        with references such as e12, which browser_action takes. Cookies last for the session.";
    let (run, describe) = (Arc::clone(navigator), Arc::clone(navigator));
    Tool::new(
        "browser_navigate",
        description,
        Safety::Moderate,
        move |context: ToolContext, args: NavigateArgs| {
            let navigator = Arc::clone(&run);
            async move { navigate(&navigator, &context, &args.url).await }
        },
    )
    .with_intent(move |context, args: NavigateArgs| {
        let intent = open_intent(&describe, &context, &args.url);
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(|args: NavigateArgs| outgoing_address(args.url))
    .with_phrases([
        "(open|visit|browse|navigate to|go to) [the] (page|url|site|website|link|address|) [at] {url:word} [in the browser]",
        "show me [the] (site|website) {url:word}",
    ])
}

/// Describes opening an address. All of it is sent, so all of it is shown.
pub(super) fn open_intent(
    navigator: &Navigator,
    context: &ToolContext,
    address: &str,
) -> std::result::Result<Intent, ToolError> {
    let url = navigator.check_address(address, &context.typed_addresses)?;
    Ok(Intent {
        level: Safety::Moderate,
        shows: format!("opens {url}"),
        subject: url.to_string(),
        pattern: Some(format!("{}/*", url.origin().ascii_serialization())),
    })
}

pub(super) fn outgoing_address(address: String) -> OutgoingData {
    let url = lango_net::parse_url(&address).ok();
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    OutgoingData {
        to: Destination::Host(host.unwrap_or_default()),
        data: address,
    }
}

async fn navigate(
    navigator: &Navigator,
    context: &ToolContext,
    address: &str,
) -> std::result::Result<ToolOutput, ToolError> {
    let url = navigator.check_address(address, &context.typed_addresses)?;
    let mut session = session_of(navigator, context).await;
    let text = open_page(navigator, &mut session, &url).await?;
    Ok(page_output(&session.page()?, text))
}

/// Opens an address and returns its outline, or the text of a PDF file.
pub(super) async fn open_page(
    navigator: &Navigator,
    session: &mut SessionPages,
    url: &Url,
) -> Result<String> {
    let opened = session.open(navigator, url).await;
    // A browser that could not start has no notes.
    if let Err(error @ (BrowserError::Unavailable(_) | BrowserError::Closed)) = opened {
        return Err(error);
    }
    let offer = session.wait_for_offer().await?;
    if let Some(offer) = offer.filter(is_pdf) {
        return read_pdf(navigator, session, &offer).await;
    }
    let mut text = session.take_notes().await?;
    match opened {
        Ok(outline) => text += &outline.format(0, usize::MAX, OUTLINE_TOKENS),
        // The dialog is part of the page: the agent answers it.
        Err(BrowserError::DialogOpen(dialog)) => text += &dialog,
        Err(error) => return Err(error),
    }
    Ok(text)
}

fn is_pdf(offer: &Download) -> bool {
    let is_named = offer.name.to_lowercase().ends_with(".pdf");
    let media_type = offer.media_type.as_deref();
    !offer.is_form_response && media_type.map_or(is_named, |kind| kind == "application/pdf")
}

/// Reads a PDF file, which the browser would only save. It is not kept.
async fn read_pdf(
    navigator: &Navigator,
    session: &SessionPages,
    offer: &Download,
) -> Result<String> {
    let page = session.page()?;
    let approved = ApprovedDownload {
        origin: origin_of(&offer.url),
        name: Some(offer.name.clone()),
    };
    let again = lango_net::parse_url(&offer.url)?;
    let step = async { page.navigate(&again, NAVIGATION_LIMIT).await.map(drop) };
    let file = session.receive_file(approved, step).await?;
    let read = Arc::clone(&navigator.parts.read_pdf);
    let text = tokio::task::spawn_blocking(move || read(file.bytes)).await;
    let text = text.map_err(|_panic| BrowserError::action("the PDF file cannot be read"))?;
    let text = text.map_err(BrowserError::Action)?;
    let text = strip_control_chars(text.trim());
    let shown = token_estimate::truncate(&text, PDF_TOKENS);
    let more = if shown.len() < text.len() {
        "\n[cut; the file is longer]"
    } else {
        ""
    };
    Ok(format!("url: {}\nPDF file\n\n{shown}{more}\n", offer.url))
}
