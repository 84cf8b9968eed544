//! Keys and their combinations, as the protocol describes them.

use serde_json::{Value, json};

use crate::error::{BrowserError, Result};

/// A key with its modifiers, such as `Control+A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPress {
    key: String,
    code: String,
    virtual_code: u32,
    /// The text that the key types.
    text: Option<String>,
    modifiers: u32,
    /// An editing command that the key triggers.
    command: Option<&'static str>,
}

const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;

/// Names, codes and numbers of keys that type nothing, or a fixed text.
const NAMED: [(&str, &str, u32, Option<&str>); 22] = [
    ("Enter", "Enter", 13, Some("\r")),
    ("Tab", "Tab", 9, Some("\t")),
    ("Escape", "Escape", 27, None),
    ("Backspace", "Backspace", 8, None),
    ("Delete", "Delete", 46, None),
    ("Insert", "Insert", 45, None),
    ("ArrowUp", "ArrowUp", 38, None),
    ("ArrowDown", "ArrowDown", 40, None),
    ("ArrowLeft", "ArrowLeft", 37, None),
    ("ArrowRight", "ArrowRight", 39, None),
    ("Home", "Home", 36, None),
    ("End", "End", 35, None),
    ("PageUp", "PageUp", 33, None),
    ("PageDown", "PageDown", 34, None),
    (" ", "Space", 32, Some(" ")),
    ("F1", "F1", 112, None),
    ("F2", "F2", 113, None),
    ("F3", "F3", 114, None),
    ("F5", "F5", 116, None),
    ("F6", "F6", 117, None),
    ("F10", "F10", 121, None),
    ("F12", "F12", 123, None),
];
/// Other names that people use.
const ALIASES: [(&str, &str); 12] = [
    ("return", "Enter"),
    ("esc", "Escape"),
    ("del", "Delete"),
    ("space", " "),
    ("spacebar", " "),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
    ("page up", "PageUp"),
    ("page down", "PageDown"),
    ("back", "Backspace"),
];

/// Most keys of one call.
const MAX_KEYS: usize = 200;

impl KeyPress {
    /// Parses one key, or several that are separated by spaces. A key that moves the focus or submits ends
    /// them: what follows would reach an element that the user was not asked about.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        if let Ok(key) = Self::parse(text) {
            return Ok(vec![key]);
        }
        let keys = text.split_whitespace().map(Self::parse);
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let (Some(_), true) = (keys.last(), keys.len() <= MAX_KEYS) else {
            return Err(BrowserError::action(format!(
                "expected 1 to {MAX_KEYS} keys"
            )));
        };
        let before_last = &keys[..keys.len() - 1];
        let moves = |key: &&Self| matches!(key.key.as_str(), "Enter" | "Tab" | "Escape");
        match before_last.iter().find(moves) {
            Some(key) => Err(BrowserError::action(format!(
                "{} must be the last key of a call",
                key.key
            ))),
            None => Ok(keys),
        }
    }

    /// Parses `Enter`, `a` or `Control+Shift+K`.
    pub fn parse(text: &str) -> Result<Self> {
        let (prefix, name) = match text.rfind('+') {
            // The last `+` may be the key itself.
            Some(at) if at + 1 == text.len() => (text[..at].trim_end_matches('+'), "+"),
            Some(at) => (&text[..at], &text[at + 1..]),
            None => ("", text),
        };
        let mut modifiers = 0;
        for modifier in prefix.split('+').filter(|part| !part.trim().is_empty()) {
            modifiers |= match modifier.trim().to_lowercase().as_str() {
                "control" | "ctrl" => CONTROL,
                "shift" => SHIFT,
                "alt" | "option" => ALT,
                "meta" | "command" | "cmd" => META,
                _ => return Err(unknown_key(text)),
            };
        }
        let mut key = Self::from_name(name).ok_or_else(|| unknown_key(text))?;
        key.modifiers |= modifiers;
        if modifiers & (CONTROL | META | ALT) != 0 {
            key.text = None;
            key.command = match name.to_lowercase().as_str() {
                "a" => Some("selectAll"),
                "c" => Some("copy"),
                "v" => Some("paste"),
                "x" => Some("cut"),
                "z" => Some("undo"),
                _ => None,
            };
        }
        Ok(key)
    }

    fn from_name(name: &str) -> Option<Self> {
        let trimmed = name.trim().to_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == trimmed);
        let wanted = match alias {
            Some((_, key)) => *key,
            None if name == " " => " ",
            None => name.trim(),
        };
        let named = NAMED
            .iter()
            .find(|(key, ..)| key.eq_ignore_ascii_case(wanted));
        if let Some((key, code, virtual_code, text)) = named {
            return Some(Self {
                key: (*key).to_owned(),
                code: (*code).to_owned(),
                virtual_code: *virtual_code,
                text: text.map(str::to_owned),
                modifiers: 0,
                command: None,
            });
        }
        let mut chars = wanted.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Some(Self::from_char(c)),
            _ => None,
        }
    }

    /// Returns the key that types a character.
    pub fn from_char(c: char) -> Self {
        if c == '\n' {
            return Self::from_name("Enter").unwrap_or_else(|| Self::typed(c));
        }
        Self::typed(c)
    }

    fn typed(c: char) -> Self {
        let upper = c.to_ascii_uppercase();
        let code = match c {
            'a'..='z' | 'A'..='Z' => format!("Key{upper}"),
            '0'..='9' => format!("Digit{c}"),
            ' ' => "Space".to_owned(),
            _ => String::new(),
        };
        let is_plain = c.is_ascii_alphanumeric() || c == ' ';
        Self {
            key: c.to_string(),
            code,
            virtual_code: if is_plain { u32::from(upper) } else { 0 },
            text: Some(c.to_string()),
            modifiers: if c.is_ascii_uppercase() { SHIFT } else { 0 },
            command: None,
        }
    }

    /// Returns the events of pressing and releasing the key.
    pub fn events(&self) -> [Value; 2] {
        let mut event = json!({
            "key": self.key, "code": self.code, "windowsVirtualKeyCode": self.virtual_code,
            "nativeVirtualKeyCode": self.virtual_code, "modifiers": self.modifiers,
        });
        let mut down = event.clone();
        down["type"] = json!(if self.text.is_some() {
            "keyDown"
        } else {
            "rawKeyDown"
        });
        if let Some(text) = &self.text {
            down["text"] = json!(text);
            down["unmodifiedText"] = json!(text);
        }
        if let Some(command) = self.command {
            down["commands"] = json!([command]);
        }
        event["type"] = json!("keyUp");
        [down, event]
    }
}

fn unknown_key(text: &str) -> BrowserError {
    BrowserError::action(format!(
        "unknown key `{}`; expected for example Enter, Tab, Escape, ArrowDown, a or Control+A",
        lango_text::sanitize::truncated_line(text, 40)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        for (text, key, modifiers) in [
            ("Enter", "Enter", 0),
            ("return", "Enter", 0),
            ("a", "a", 0),
            ("A", "A", SHIFT),
            ("ctrl+a", "a", CONTROL),
            ("Control+Shift+ArrowDown", "ArrowDown", CONTROL | SHIFT),
            ("+", "+", 0),
            ("Control++", "+", CONTROL),
            ("space", " ", 0),
        ] {
            let press = KeyPress::parse(text).unwrap();
            assert_eq!(
                (press.key.as_str(), press.modifiers),
                (key, modifiers),
                "{text}"
            );
        }
        for text in ["", "Hyper+a", "Enterr"] {
            assert!(KeyPress::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            KeyPress::parse("Control+A").unwrap().command,
            Some("selectAll")
        );
    }
}
