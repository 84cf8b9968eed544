//! A lenient parser for git's configuration format. It also accepts input that git rejects.

use std::fs::File;
use std::io::Read;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use rustix::fs::{FileType, Mode};

use super::super::confined_open;

/// Maximum number of bytes read of a file.
const MAX_BYTES: u64 = 256 * 1024;

#[derive(Debug, PartialEq)]
pub struct GitSetting {
    /// `section.key` or `section.name.key`; section and key are in lower case.
    pub key: String,
    pub value: String,
}

impl GitSetting {
    /// Returns true if the setting includes another configuration file.
    pub fn is_include(&self) -> bool {
        self.key == "include.path"
            || (self.key.starts_with("includeif.") && self.key.ends_with(".path"))
    }
}

/// Reads the start of a regular file. Ignores pipes and devices, which could block.
pub fn read_config(path: &Path) -> Option<String> {
    let opened = rustix::fs::open(path, confined_open::READ, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&opened).ok()?;
    if confined_open::file_type(&stat) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(opened)
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn parse_config(text: &str) -> Vec<GitSetting> {
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut section = String::new();
    let mut all = Vec::new();
    while let Some(&next) = chars.peek() {
        match next {
            '#' | ';' => skip_line(&mut chars),
            '[' => {
                chars.next();
                section = parse_header(&mut chars);
            }
            next if next.is_whitespace() => _ = chars.next(),
            _ => {
                let (name, has_value) = parse_key(&mut chars);
                let value = if has_value {
                    parse_value(&mut chars)
                } else {
                    String::new()
                };
                all.push(GitSetting {
                    key: format!("{section}.{name}"),
                    value,
                });
            }
        }
    }
    all
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    chars.by_ref().find(|c| *c == '\n');
}

/// Parses the text between brackets: a section and an optional quoted name.
fn parse_header(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut section, mut name) = (String::new(), None::<String>);
    let mut is_quoted = false;
    while let Some(next) = chars.next() {
        match (next, &mut name) {
            ('\n', _) => break,
            (']', _) if !is_quoted => break,
            ('"', name) => {
                is_quoted = !is_quoted;
                name.get_or_insert_default();
            }
            ('\\', Some(name)) => name.extend(chars.next()),
            (next, Some(name)) if is_quoted => name.push(next),
            (next, _) if next.is_whitespace() => {}
            (next, _) => section.extend(next.to_lowercase()),
        }
    }
    match name {
        Some(name) => format!("{section}.{name}"),
        None => section,
    }
}

/// Parses a key; the flag is true if a value follows.
fn parse_key(chars: &mut Peekable<Chars<'_>>) -> (String, bool) {
    let mut key = String::new();
    for next in chars.by_ref() {
        match next {
            '=' => return (key.trim().to_owned(), true),
            '\n' => break,
            next => key.extend(next.to_lowercase()),
        }
    }
    (key.trim().to_owned(), false)
}

fn parse_value(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    let mut is_quoted = false;
    while let Some(next) = chars.next() {
        match next {
            '\n' => break,
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => {
                skip_line(chars);
                break;
            }
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                // The value continues on the next line.
                Some('\r') => _ = chars.next_if_eq(&'\n'),
                Some('\n') | None => {}
                Some(escaped) => value.push(escaped),
            },
            next => value.push(next),
        }
    }
    value.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse_config(text)
            .into_iter()
            .map(|setting| (setting.key, setting.value))
            .collect()
    }

    /// B100
    #[test]
    fn parses_settings_as_git_does() {
        for (text, key, value) in [
            ("[core]\n\tpager = less\n", "core.pager", "less"),
            ("\u{feff}[Core] HooksPath=a", "core.hookspath", "a"),
            ("[alias]\r\nx = !./a.sh\r\n", "alias.x", "!./a.sh"),
            (
                "[diff \"My.\\\"Tool]\"]\ntextconv = \"./a b\" # c",
                "diff.My.\"Tool].textconv",
                "./a b",
            ),
            ("[core]\npager = ./a\\\n.sh ; c", "core.pager", "./a.sh"),
            (
                "[alias]\nx = \"!sh -c \\\"./a.sh;b\\\"\"",
                "alias.x",
                "!sh -c \"./a.sh;b\"",
            ),
        ] {
            assert_eq!(read(text), [(key.to_owned(), value.to_owned())], "{text}");
        }
    }

    /// B100: a comment ends with its line, even if the line ends with a backslash.
    #[test]
    fn comments_do_not_continue_on_the_next_line() {
        let text = "[include]\n# a \\\npath = one\nother = x ; b \\\npath = two\n";
        let paths: Vec<String> = parse_config(text)
            .into_iter()
            .filter(GitSetting::is_include)
            .map(|setting| setting.value)
            .collect();
        assert_eq!(paths, ["one", "two"]);
    }

    /// B100
    #[test]
    fn accepts_malformed_input() {
        for text in [
            "[",
            "[a",
            "[\"",
            "[a \"\\",
            "=",
            "a=\\",
            "a=\"",
            "\\",
            "]",
            "[a]\n\0=\0",
            "#",
        ] {
            parse_config(text);
        }
    }
}
