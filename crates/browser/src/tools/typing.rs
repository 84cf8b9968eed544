//! Typing into fields, also values of secrets.

use lango_domain::SecretReference;
use lango_domain::secret_reference::SecretRedactor;

use super::action::{ActionArgs, ActionKind, target};
use crate::error::{BrowserError, Result};
use crate::page::Page;
use crate::page::keys::KeyPress;
use crate::refs::ElementRef;

pub(super) async fn type_text(
    page: &Page,
    args: &ActionArgs,
    redactor: &SecretRedactor,
) -> Result<String> {
    let element = target(page, args).await?;
    let element = element.ok_or_else(|| BrowserError::action("this action needs a ref"))?;
    let typed = typed_text(args, redactor)?;
    page.fill(element, typed.text, typed.is_secret).await?;
    if let Some(key) = &args.key {
        page.press_all(&KeyPress::parse_all(key)?).await?;
    }
    Ok(String::new())
}

/// The text to type. Outlines and screenshots do not show the field of a secret.
struct TypedText<'a> {
    text: &'a str,
    is_secret: bool,
}

/// Returns the text to type. The engine has put in the values of secrets, and the redactor knows them.
fn typed_text<'a>(args: &'a ActionArgs, redactor: &SecretRedactor) -> Result<TypedText<'a>> {
    let text = args.text.as_deref();
    let text = text.ok_or_else(|| BrowserError::action("the action type needs a text"))?;
    Ok(TypedText {
        text,
        is_secret: redactor.knows(text) || redactor.finds_in(text),
    })
}

/// Refuses a secret, or a reference to one, that is not typed into a field named by a reference: only such a
/// field stays in the document whose host was checked.
pub(super) fn check_secret_use(args: &ActionArgs, redactor: &SecretRedactor) -> Result<()> {
    let text = args.text.as_deref().unwrap_or_default();
    if !SecretReference::is_in(text) && !redactor.knows(text) && !redactor.finds_in(text) {
        return Ok(());
    }
    let reference = args.r#ref.as_deref().map(ElementRef::parse);
    match (args.action, reference) {
        (ActionKind::Type, Some(Ok(_))) => Ok(()),
        (ActionKind::Type, _) => Err(BrowserError::action(
            "a secret is typed into a field that `ref` names by its reference, such as e12",
        )),
        _ => Err(BrowserError::action(
            "a secret can only be typed into a field, with the action type",
        )),
    }
}
