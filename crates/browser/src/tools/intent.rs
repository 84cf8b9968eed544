//! The effect of an action, for the approval decision.

use lango_domain::{Intent, Safety};
use lango_text::sanitize::one_line;
use serde::Deserialize;
use serde_json::json;

use super::action::{ActionArgs, ActionKind, target};
use crate::error::{BrowserError, Result};
use crate::navigator::Navigator;
use crate::page::{Page, check};

/// Words on controls that spend, publish, send or destroy. A control without a form can do so too.
const COMMITTING_WORDS: [&str; 40] = [
    "buy",
    "pay",
    "purchase",
    "order",
    "checkout",
    "check out",
    "subscribe",
    "donate",
    "transfer",
    "withdraw",
    "send",
    "submit",
    "publish",
    "post",
    "share",
    "delete",
    "remove",
    "erase",
    "cancel account",
    "confirm",
    "sign up",
    "register",
    "book",
    "reserve",
    "authorize",
    "authorise",
    "grant",
    "accept and",
    "agree",
    "kaufen",
    "bezahlen",
    "bestellen",
    "senden",
    "absenden",
    "löschen",
    "acheter",
    "payer",
    "envoyer",
    "comprar",
    "pagar",
];

/// The answer of the page about an element.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ElementIntent {
    description: String,
    name: String,
    role: String,
    submits: bool,
    /// A key acts like a click on the element.
    activates: bool,
    search: bool,
    password: bool,
    payment: bool,
    file: bool,
    fields: Vec<FilledField>,
    target: String,
}

#[derive(Debug, Deserialize)]
struct FilledField {
    name: String,
    value: String,
}

/// Describes an action: its level, the site, and what it would send.
pub(super) async fn action_intent(
    navigator: &Navigator,
    page: &Page,
    args: &ActionArgs,
) -> Result<Intent> {
    let origin = origin(&page.url());
    let verb = verb(args.action);
    let looks = |level, shows: String| Intent {
        level,
        subject: format!("{verb} {origin}"),
        shows,
        pattern: None,
    };
    match args.action {
        ActionKind::Hover
        | ActionKind::Scroll
        | ActionKind::SelectText
        | ActionKind::Wait
        | ActionKind::Tab => {
            return Ok(looks(Safety::Safe, format!("{verb} on {origin}")));
        }
        ActionKind::Back | ActionKind::Forward => {
            return Ok(looks(Safety::Safe, format!("goes {verb} from {origin}")));
        }
        ActionKind::Reload => {
            return Ok(looks(Safety::Moderate, format!("reloads {}", page.url())));
        }
        ActionKind::Dialog => return Ok(dialog_intent(page, args, &origin)),
        ActionKind::Eval => {
            if !navigator.parts.options.settings.allow_eval {
                let message =
                    "eval is off; the user can turn it on with the setting browser.allowEval";
                return Err(BrowserError::action(message));
            }
            let script = args.text.as_deref().unwrap_or_default();
            let shows = format!("runs JavaScript on {origin}:\n{script}");
            return Ok(looks(Safety::Dangerous, shows));
        }
        _ => {}
    }
    page.check_usable()?;
    let element = describe_target(page, args).await?;
    Ok(element_intent(args, &origin, &element))
}

async fn describe_target(page: &Page, args: &ActionArgs) -> Result<ElementIntent> {
    let key = match args.action {
        ActionKind::Press => args.key.as_ref().or(args.text.as_ref()),
        _ => args.key.as_ref(),
    };
    let described = match target(page, args).await? {
        Some(element) => {
            page.call_on(element, "intent", json!({ "key": key }))
                .await?
        }
        None => {
            let args = json!({ "ref": 0, "key": key });
            check(page.call(&page.main_frame(), "intent", args).await?)?
        }
    };
    serde_json::from_value(described)
        .map_err(|error| BrowserError::Protocol(format!("unexpected description: {error}")))
}

fn element_intent(args: &ActionArgs, origin: &str, element: &ElementIntent) -> Intent {
    let verb = verb(args.action);
    let is_click = matches!(
        args.action,
        ActionKind::Click | ActionKind::DoubleClick | ActionKind::RightClick
    );
    let submits =
        element.submits && (is_click || args.key.is_some() || args.action == ActionKind::Press);
    let acts = is_click || (element.activates && args.action == ActionKind::Press);
    let commits = acts && element.role != "link" && has_committing_word(&element.name);
    let types_secret = args.action == ActionKind::Type && element.password;
    let level = match args.action {
        ActionKind::Upload => Safety::Dangerous,
        _ if submits && !element.search => Safety::Dangerous,
        _ if commits || types_secret || (is_click && element.payment) => Safety::Dangerous,
        _ => Safety::Moderate,
    };
    let mut shows = format!("{verb} {} on {origin}", element.description);
    if let Some(text) = args.text.as_deref().filter(|_| !is_click) {
        shows += &format!(": {}", one_line(text));
    }
    if submits {
        shows += &format!("\nsubmits a form to {}", element.target);
        for field in &element.fields {
            shows += &format!("\n  {}: {}", field.name, field.value);
        }
    }
    if element.payment {
        shows += "\nthe form asks for payment details";
    }
    if element.file && args.action == ActionKind::Upload {
        shows += "\nthe file is given to the page";
    }
    Intent {
        level,
        shows,
        subject: format!("{verb} {origin} {}", element.name),
        pattern: (level == Safety::Moderate).then(|| format!("{verb} {origin} *")),
    }
}

fn dialog_intent(page: &Page, args: &ActionArgs, origin: &str) -> Intent {
    let dialog = page.with_tab(|tab| tab.dialog.clone()).ok().flatten();
    let (kind, message) = dialog.map_or_else(Default::default, |open| (open.kind, open.message));
    let text = args.text.as_deref().unwrap_or("accept");
    let is_refusal = matches!(text.trim(), "dismiss" | "cancel" | "no");
    let level = match is_refusal || kind == "beforeunload" || kind.is_empty() {
        true => Safety::Moderate,
        false => Safety::Dangerous,
    };
    Intent {
        level,
        shows: format!("answers the {kind} dialog of {origin}: \"{message}\" with {text}"),
        subject: format!("dialog {origin} {text}"),
        pattern: None,
    }
}

fn has_committing_word(name: &str) -> bool {
    let name = format!(" {} ", name.to_lowercase());
    let name: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    COMMITTING_WORDS
        .iter()
        .any(|word| name.contains(&format!(" {word} ")))
}

fn origin(url: &str) -> String {
    url::Url::parse(url).map_or_else(
        |_| "the page".to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

fn verb(action: ActionKind) -> &'static str {
    match action {
        ActionKind::Click => "clicks",
        ActionKind::DoubleClick => "double-clicks",
        ActionKind::RightClick => "right-clicks",
        ActionKind::Type => "types into",
        ActionKind::Select => "selects in",
        ActionKind::Check => "checks",
        ActionKind::Press => "presses a key in",
        ActionKind::Hover => "points at",
        ActionKind::Scroll => "scrolls",
        ActionKind::Drag => "drags",
        ActionKind::SelectText => "selects text",
        ActionKind::Upload => "uploads a file to",
        ActionKind::Download => "saves a file of",
        ActionKind::Back => "back",
        ActionKind::Forward => "forward",
        ActionKind::Reload => "reloads",
        ActionKind::Wait => "waits",
        ActionKind::Tab => "switches tabs",
        ActionKind::Dialog => "answers",
        ActionKind::Eval => "runs a script",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(action: &str, key: Option<&str>) -> ActionArgs {
        serde_json::from_value(json!({ "action": action, "ref": "e1", "key": key, "text": "x" }))
            .unwrap()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn the_level_follows_from_the_effect() {
        let submit = || ElementIntent {
            submits: true,
            name: "Go".to_owned(),
            fields: vec![FilledField {
                name: "Email".to_owned(),
                value: "a@b".to_owned(),
            }],
            target: "https://a.example/send".to_owned(),
            ..ElementIntent::default()
        };
        let named = |name: &str, role: &str| ElementIntent {
            name: name.to_owned(),
            role: role.to_owned(),
            ..ElementIntent::default()
        };
        let password = || ElementIntent {
            password: true,
            ..ElementIntent::default()
        };
        let search = || ElementIntent {
            search: true,
            ..submit()
        };
        for (args, element, level) in [
            (args("click", None), submit(), Safety::Dangerous),
            (args("click", None), search(), Safety::Moderate),
            (
                args("type", None),
                ElementIntent {
                    submits: false,
                    ..submit()
                },
                Safety::Moderate,
            ),
            (args("type", Some("Enter")), submit(), Safety::Dangerous),
            (args("type", None), password(), Safety::Dangerous),
            (
                args("upload", None),
                ElementIntent::default(),
                Safety::Dangerous,
            ),
            (
                args("click", None),
                named("Next page", "button"),
                Safety::Moderate,
            ),
            (
                args("click", None),
                named("Buy now!", "button"),
                Safety::Dangerous,
            ),
            (
                args("click", None),
                named("Postal codes", "button"),
                Safety::Moderate,
            ),
            (
                args("click", None),
                named("How to buy", "link"),
                Safety::Moderate,
            ),
        ] {
            let intent = element_intent(&args, "https://a.example", &element);
            assert_eq!(intent.level, level, "{args:?} {element:?}");
            assert_eq!(intent.pattern.is_some(), level == Safety::Moderate);
        }
        let intent = element_intent(&args("click", None), "https://a.example", &submit());
        for part in ["https://a.example/send", "Email: a@b"] {
            assert!(intent.shows.contains(part), "{}", intent.shows);
        }
    }
}
