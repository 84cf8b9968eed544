//! Removes known secret values from texts, in every form in which programs print them.
//!
//! The search is an Aho-Corasick automaton of our own: it skips line breaks, since `base64` and PEM
//! files wrap values; it joins overlapping matches, so that no part of either value remains; and a
//! stream holds back only the bytes that may still become a value.

mod automaton;
mod encoding;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use automaton::{Automaton, Scan};
pub use stream::RedactedStream;

/// Shorter values are not redacted: they occur in ordinary text.
pub const MIN_REDACTED_BYTES: usize = 6;

/// Replaces known secret values by `[secret NAME: set, hidden]`. Cheap to clone.
#[derive(Clone, Default)]
pub struct SecretRedactor {
    known: Arc<[KnownSecret]>,
    /// `None` if there is nothing to search for.
    automaton: Option<Arc<Automaton>>,
}

#[derive(Clone)]
struct KnownSecret {
    name: String,
    value: SecretString,
}

impl SecretRedactor {
    /// Creates a redactor of these values, each with the name that replaces it. Values for which
    /// [`SecretRedactor::can_redact`] is false are left out.
    pub fn new<V: Into<SecretString>>(secrets: impl IntoIterator<Item = (String, V)>) -> Self {
        Self::from_known(
            secrets
                .into_iter()
                .map(|(name, value)| KnownSecret {
                    name,
                    value: value.into(),
                })
                .collect(),
        )
    }

    /// Returns true if a value of this name is long enough to be redacted, and is not part of the text
    /// that replaces it.
    pub fn can_redact(name: &str, value: &str) -> bool {
        let shape = encoding::without_line_breaks(value.trim());
        shape.len() >= MIN_REDACTED_BYTES && !hidden_mark(name).contains(&shape)
    }

    /// Returns a redactor that also knows this value. A value that is known keeps its first name.
    #[must_use]
    pub fn with_secret(&self, name: &str, value: impl Into<SecretString>) -> Self {
        let value = value.into();
        if self.knows(value.expose_secret()) {
            return self.clone();
        }
        let mut known = self.known.to_vec();
        known.push(KnownSecret {
            name: name.to_owned(),
            value,
        });
        Self::from_known(known)
    }

    /// Returns true if the redactor changes no text.
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Returns true if the value is known.
    pub fn knows(&self, value: &str) -> bool {
        self.known
            .iter()
            .any(|known| known.value.expose_secret() == value)
    }

    /// Returns true if every value of the other redactor is known.
    pub fn knows_all_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.known, &other.known)
            || other
                .known
                .iter()
                .all(|known| self.knows(known.value.expose_secret()))
    }

    /// Returns the text without known values. Borrows the text if it contains none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(automaton) = &self.automaton else {
            return Cow::Borrowed(text);
        };
        let mut scan = Scan::new(0);
        let found = scan.feed(automaton, text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut from = 0;
        for found in found {
            redacted.push_str(&text[from..found.start]);
            redacted.push_str(&hidden_mark(&self.known[found.secret].name));
            from = found.end;
        }
        redacted.push_str(&text[from..]);
        Cow::Owned(redacted)
    }

    /// Redacts a text in place, and returns true if it changed.
    pub fn redact_in_place(&self, text: &mut String) -> bool {
        let Cow::Owned(redacted) = self.redact(text) else {
            return false;
        };
        *text = redacted;
        true
    }

    /// Returns true if a text contains a known value.
    pub fn finds_in(&self, text: &str) -> bool {
        matches!(self.redact(text), Cow::Owned(_))
    }

    fn from_known(known: Vec<KnownSecret>) -> Self {
        let mut automaton = Automaton::default();
        for (index, KnownSecret { name, value }) in known.iter().enumerate() {
            let value = value.expose_secret();
            if Self::can_redact(name, value) {
                for form in encoding::forms(value) {
                    automaton.insert(form.as_bytes(), index);
                }
            }
        }
        let automaton = automaton.finish().map(Arc::new);
        Self {
            known: known.into(),
            automaton,
        }
    }
}

impl fmt::Debug for SecretRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretRedactor({} secrets)", self.known.len())
    }
}

/// Returns the text that replaces a secret. Models read `redacted` alone as "not set".
pub fn hidden_mark(name: &str) -> String {
    format!("[secret {name}: set, hidden]")
}

#[cfg(test)]
#[path = "secret_redactor/tests.rs"]
mod tests;
