//! `browser_action`: acts on the open page.

use std::sync::Arc;
use std::time::Duration;

use lango_domain::{
    Destination, OutgoingData, Safety, SecretField, Tool, ToolContext, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::file_transfer::{download, download_intent, upload};
use super::intent::action_intent;
use super::navigate::outgoing_address;
use super::tabs::use_tab;
use super::typing::{check_secret_use, type_text};
use super::{find_element, page_output, session_of};
use crate::error::{BrowserError, Result};
use crate::navigator::Navigator;
use crate::page::input::{Click, Point};
use crate::page::keys::KeyPress;
use crate::page::{Page, check};
use crate::refs::ElementRef;

const DEFAULT_SECONDS: u64 = 10;
const MAX_SECONDS: u64 = 60;
/// Time for a page to react to an action, unless the call waits for something.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionKind {
    #[default]
    Click,
    DoubleClick,
    RightClick,
    /// Replaces the content of a field by `text`; `key` is pressed after it.
    Type,
    /// Chooses options of a list; several are separated by line breaks.
    Select,
    /// Checks a control; `text` off unchecks it.
    Check,
    /// Presses `key`, such as Enter or Control+A; several keys are separated by spaces.
    Press,
    Hover,
    /// Scrolls to `ref`, or in the direction `text`: down, up, left, right, top, bottom.
    Scroll,
    /// Drags `ref` to `to_ref`, or along `path`.
    Drag,
    /// Selects `text` on the page or in `ref` with the mouse; all of `ref` without a text.
    SelectText,
    /// Gives the file at the path `text` to a file field.
    Upload,
    /// Saves the file that the page offered last, or the one at the address `text`, in the workspace.
    Download,
    Back,
    Forward,
    Reload,
    /// Waits until `text` is on the page.
    Wait,
    /// Lists tabs; `text` is a number to switch to, new or close.
    Tab,
    /// Answers a dialog: `text` is accept or dismiss, or the answer to a prompt.
    Dialog,
    /// Runs JavaScript; off by default.
    Eval,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ActionArgs {
    /// The action; click if left out.
    #[serde(default)]
    pub action: ActionKind,
    /// The reference of an element, such as e12, or its exact visible name.
    pub r#ref: Option<String>,
    /// A CSS selector that matches one element, instead of `ref`.
    pub selector: Option<String>,
    /// Depends on the action. To type a secret, write its reference, such as {{secret:NAME}}.
    pub text: Option<String>,
    /// The key to press.
    pub key: Option<String>,
    /// Where to drag to.
    pub to_ref: Option<String>,
    /// Points in `ref` to drag along, in pixels, such as 10,20 80,20.
    pub path: Option<String>,
    /// Position inside the element, in pixels from its left edge; its center if left out.
    pub x: Option<f64>,
    /// Position inside the element, in pixels from its top edge.
    pub y: Option<f64>,
    #[schemars(description = "Seconds to wait at most: 10 if left out, up to 60.")]
    pub timeout: Option<u64>,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let description = "Acts on the page that is open and gives back what changed. A reference never acts on another \
        element: if its element is gone or covered, the call fails and says what is there now.";
    let (run, describe) = (Arc::clone(navigator), Arc::clone(navigator));
    let outgoing = Arc::clone(navigator);
    Tool::new(
        "browser_action",
        description,
        Safety::Moderate,
        move |context: ToolContext, args: ActionArgs| {
            let navigator = Arc::clone(&run);
            async move { act(&navigator, &context, args).await }
        },
    )
    .with_intent(move |context: ToolContext, args: ActionArgs| {
        let navigator = Arc::clone(&describe);
        async move {
            let session = session_of(&navigator, &context).await;
            check_secret_use(&args, &context.redactor)?;
            if args.action == ActionKind::Download {
                return Ok(download_intent(&navigator, &session, &args)?);
            }
            Ok(action_intent(&navigator, &session.page()?, &args).await?)
        }
    })
    .with_secret_fields([SecretField::Text("text")])
    .with_untrusted_output()
    .with_outgoing_in(move |context, args: ActionArgs| outgoing_text(&outgoing, context, args))
    .with_phrases([
        "click [on] [the] {ref} (button|link|)",
        "press [on] [the] {ref} (button|link)",
        "(type|enter|put|write) {text} (into|in) [the] {ref} (field|box|) {action=\"type\"}",
        "fill [in] [the] {ref} (field|box|) with {text} {action=\"type\"}",
        "(select|choose|pick) {text} (in|from) [the] {ref} (list|field|) {action=\"select\"}",
        "(check|tick) [the] {ref} (box|checkbox|) {action=\"check\"}",
        "(uncheck|untick) [the] {ref} (box|checkbox|) {action=\"check\"} {text=\"off\"}",
        "(submit|send) [the] form {action=\"press\"} {key=\"Enter\"}",
        "scroll {text:word} {action=\"scroll\"}",
        "go back [to the] (previous page|last page|) {action=\"back\"}",
        "(reload|refresh) [the] page {action=\"reload\"}",
        "(download|save) [the] (file|download) {action=\"download\"}",
        "(download|save) [the] (file|) [at] {text:word} {action=\"download\"}",
    ])
}

/// Returns the text that an action passes to the page. Words of the user may be passed; others need an
/// approval once private content was read.
fn outgoing_text(
    navigator: &Navigator,
    context: &ToolContext,
    args: ActionArgs,
) -> Option<OutgoingData> {
    let sends = matches!(
        args.action,
        ActionKind::Type
            | ActionKind::Select
            | ActionKind::Dialog
            | ActionKind::Upload
            | ActionKind::Eval
    );
    if args.action == ActionKind::Download {
        return args.text.map(outgoing_address);
    }
    let data = match args.action {
        ActionKind::Press => args.key,
        _ => args.text.filter(|_| sends),
    };
    // A reference stays with its document, so the host is still the same when the action runs.
    let element = args.r#ref.as_deref();
    let element = element.and_then(|text| ElementRef::parse(text).ok());
    let host = navigator.current_host(&context.session_key(), element);
    data.map(|data| OutgoingData {
        to: Destination::Configured(vec![host]),
        data,
    })
}

async fn act(
    navigator: &Navigator,
    context: &ToolContext,
    args: ActionArgs,
) -> std::result::Result<ToolOutput, ToolError> {
    let mut session = session_of(navigator, context).await;
    check_secret_use(&args, &context.redactor)?;
    if args.action == ActionKind::Download {
        return download(navigator, context, &mut session, &args).await;
    }
    let page = session.page()?;
    if !matches!(
        args.action,
        ActionKind::Dialog | ActionKind::Tab | ActionKind::Reload
    ) {
        page.check_usable()?;
    }
    let seconds = args
        .timeout
        .unwrap_or(DEFAULT_SECONDS)
        .clamp(1, MAX_SECONDS);
    let limit = Duration::from_secs(seconds);
    if args.action == ActionKind::Tab {
        let text = use_tab(&mut session, args.text.as_deref()).await?;
        return Ok(page_output(&session.page()?, text));
    }
    let mark = page.mark();
    let said = match args.action {
        ActionKind::Type => type_text(&page, &args, &context.redactor).await,
        _ => run_action(navigator, &page, &args, limit).await,
    };
    if let Err(error @ BrowserError::Action(_)) = &said {
        // A failed step may have changed the page: nothing is lost, and the agent sees why.
        return Err(ToolError(error.to_string()));
    }
    let mut text = said?;
    let settle = match args.action {
        ActionKind::Back | ActionKind::Forward | ActionKind::Reload => limit,
        _ => SETTLE_LIMIT.min(limit),
    };
    text += &session.describe_changes(&page, &mark, settle).await?;
    let page = session.page().unwrap_or(page);
    Ok(page_output(&page, text))
}

/// Returns the element that the arguments mean.
pub(super) async fn target(page: &Page, args: &ActionArgs) -> Result<Option<ElementRef>> {
    match (&args.r#ref, &args.selector) {
        (Some(text), _) => find_element(page, text).await.map(Some),
        (None, Some(selector)) => {
            let found = page
                .call(&page.main_frame(), "find", json!(selector))
                .await?;
            let number = check(found)?["ref"].as_u64().unwrap_or_default();
            Ok(Some(ElementRef(number)))
        }
        (None, None) => Ok(None),
    }
}

async fn run_action(
    navigator: &Navigator,
    page: &Page,
    args: &ActionArgs,
    limit: Duration,
) -> Result<String> {
    let element = target(page, args).await?;
    let needed = || element.ok_or_else(|| BrowserError::action("this action needs a ref"));
    let offset = args.x.zip(args.y).map(|(x, y)| Point { x, y });
    match args.action {
        ActionKind::Click | ActionKind::DoubleClick | ActionKind::RightClick => {
            let click = Click {
                offset,
                button: if args.action == ActionKind::RightClick {
                    "right"
                } else {
                    "left"
                },
                count: if args.action == ActionKind::DoubleClick {
                    2
                } else {
                    1
                },
                ..Click::left(needed()?)
            };
            page.click(click).await?;
        }
        ActionKind::Select | ActionKind::Check => {
            return edit_field(page, needed()?, args).await;
        }
        ActionKind::Press => {
            let key = args.key.as_ref().or(args.text.as_ref());
            let key = key.ok_or_else(|| BrowserError::action("the action press needs a key"))?;
            page.press_in(element, &KeyPress::parse_all(key)?).await?;
        }
        ActionKind::Hover => page.hover(needed()?, offset).await?,
        ActionKind::Scroll => page.scroll(element, args.text.as_deref()).await?,
        ActionKind::Drag => drag(page, needed()?, args).await?,
        ActionKind::SelectText => page.select_text(element, args.text.as_deref()).await?,
        ActionKind::Upload => upload(navigator, page, element, args).await?,
        ActionKind::Back => page.go(-1).await?,
        ActionKind::Forward => page.go(1).await?,
        ActionKind::Reload => page.reload().await?,
        ActionKind::Wait => page.wait_for_text(args.text.as_deref(), limit).await?,
        ActionKind::Dialog => answer_dialog(page, args).await?,
        ActionKind::Eval => return evaluate(navigator, page, args).await,
        ActionKind::Tab | ActionKind::Type | ActionKind::Download => {}
    }
    Ok(String::new())
}

/// Runs JavaScript. The intent refuses it too; a call without one must not pass.
async fn evaluate(navigator: &Navigator, page: &Page, args: &ActionArgs) -> Result<String> {
    if !navigator.parts.options.settings.allow_eval {
        return Err(BrowserError::action("eval is off"));
    }
    let script = args.text.as_deref();
    let script = script.ok_or_else(|| BrowserError::action("the action eval needs a text"))?;
    let result = page.evaluate(script).await?;
    let result = lango_text::token_estimate::truncate(&result, 1_000);
    Ok(format!("result: {result}\n"))
}

async fn edit_field(page: &Page, element: ElementRef, args: &ActionArgs) -> Result<String> {
    match args.action {
        ActionKind::Select => {
            let text = args.text.as_deref();
            let text =
                text.ok_or_else(|| BrowserError::action("the action select needs a text"))?;
            let choices: Vec<String> = text.lines().map(str::to_owned).collect();
            page.select(element, &choices).await?;
        }
        _ => {
            let text = args.text.as_deref();
            let is_wanted = !matches!(text, Some("off" | "false" | "no" | "unchecked"));
            if !page.set_checked(element, is_wanted).await? {
                return Ok("it was so already\n".to_owned());
            }
        }
    }
    Ok(String::new())
}

async fn drag(page: &Page, from: ElementRef, args: &ActionArgs) -> Result<()> {
    let offset = args.x.zip(args.y).map(|(x, y)| Point { x, y });
    if let Some(path) = &args.path {
        return page.drag_along(from, &parse_path(path)?).await;
    }
    match &args.to_ref {
        Some(to) => {
            let to = find_element(page, to).await?;
            page.drag((from, None), (to, offset)).await
        }
        None if offset.is_some() => page.drag((from, None), (from, offset)).await,
        None => Err(BrowserError::action(
            "the action drag needs to_ref, path, or x and y",
        )),
    }
}

/// Most points of a path.
const MAX_POINTS: usize = 200;

/// Parses points such as `10,20 80,20`.
fn parse_path(text: &str) -> Result<Vec<Point>> {
    let parse = |point: &str| {
        let (x, y) = point.split_once(',')?;
        let (x, y): (f64, f64) = (x.parse().ok()?, y.parse().ok()?);
        (x.is_finite() && y.is_finite()).then_some(Point { x, y })
    };
    let points: Option<Vec<Point>> = text.split_whitespace().map(parse).collect();
    match points {
        Some(points) if (2..=MAX_POINTS).contains(&points.len()) => Ok(points),
        _ => Err(BrowserError::action(format!(
            "`{}` is not a path; expected 2 to {MAX_POINTS} points such as 10,20 80,20",
            lango_text::sanitize::truncated_line(text, 60)
        ))),
    }
}

async fn answer_dialog(page: &Page, args: &ActionArgs) -> Result<()> {
    match args.text.as_deref().map(str::trim) {
        None | Some("accept" | "ok" | "yes") => page.answer_dialog(true, None).await,
        Some("dismiss" | "cancel" | "no") => page.answer_dialog(false, None).await,
        Some(text) => page.answer_dialog(true, Some(text)).await,
    }
}
