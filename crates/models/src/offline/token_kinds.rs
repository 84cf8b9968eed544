//! Classifies tokens that are not words: URLs, paths, times, amounts.

use super::words::is_unspaced;

/// Extensions that make a dotted token a file name.
const FILE_EXTENSIONS: &str = "txt md markdown pdf csv tsv json jsonl yaml yml toml xml html htm css js jsx ts tsx py rs go \
    java kt c h cpp hpp cs rb php sh bash zsh fish ps1 bat sql db sqlite log ini cfg conf env lock zip tar gz tgz bz2 xz \
    7z rar iso img png jpg jpeg gif svg webp bmp heic mp3 mp4 mkv avi mov wav flac ogg doc docx xls xlsx ppt pptx odt ods \
    key pem crt cer pub asc gpg srt epub ipynb parquet proto tf dockerfile makefile lua swift vue svelte tex bib bak tmp \
    exe dll so deb rpm apk dmg jar war wasm patch diff";

const TOP_LEVEL_DOMAINS: &str = "com org net io de dev app co uk fr es jp kr at ch eu us info gov edu me ai tv xyz blog shop cloud \
    site online news it nl se be pl ca au br mx in cn";

type KindCheck = (&'static str, fn(&str) -> bool);

/// Token kinds, checked in this order.
const CHECKS: [KindCheck; 13] = [
    ("url", is_url),
    ("email", is_email),
    ("address", is_chain_address),
    ("digest", is_digest),
    ("clock", is_clock),
    ("date", is_date),
    ("amount", is_amount),
    ("duration", is_duration),
    ("sum", is_arithmetic),
    ("flag", is_flag),
    ("path", is_path),
    ("file", is_file),
    ("issue", is_issue),
];

/// Returns the kind of a whitespace-delimited token, if it is not a word.
pub fn token_kind(token: &str) -> Option<&'static str> {
    if token.len() > 1 && token.starts_with('`') && token.ends_with('`') {
        return Some("code");
    }
    let token = token.trim_matches(|c: char| {
        matches!(
            c,
            ',' | ';'
                | '!'
                | '?'
                | '"'
                | '('
                | ')'
                | '['
                | ']'
                | '“'
                | '”'
                | '«'
                | '»'
                | '「'
                | '」'
                | '。'
                | '、'
        )
    });
    let token = token.trim_end_matches(['.', ':']);
    let lower = token.to_ascii_lowercase();
    CHECKS
        .into_iter()
        .find(|(_, is)| is(&lower))
        .map(|(kind, _)| kind)
}

/// Returns the kind of a word with digits, if it has one.
pub fn word_kind(word: &str) -> Option<String> {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    if digits == word.len() {
        return Some(
            if word.len() == 4 {
                "<year>"
            } else {
                "<number>"
            }
            .to_owned(),
        );
    }
    let after = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if word.starts_with(|c: char| c.is_ascii_digit()) && after.chars().all(is_unspaced) {
        // 8時に, 8시에, 30分: the number is replaced, the unit stays.
        let counted: String = after.chars().take(1).collect();
        return Some(format!("<number>{counted}"));
    }
    None
}

fn is_url(token: &str) -> bool {
    if token.starts_with("http://") || token.starts_with("https://") || token.starts_with("www.") {
        return true;
    }
    let host = token.split(['/', ':', '?']).next().unwrap_or_default();
    let Some((name, top)) = host.rsplit_once('.') else {
        return false;
    };
    let is_label = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    !name.is_empty()
        && name.chars().all(is_label)
        && name.chars().any(char::is_alphabetic)
        && (contains_word(TOP_LEVEL_DOMAINS, top) || token.starts_with("localhost"))
        || host == "localhost"
}

fn is_email(token: &str) -> bool {
    token
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

fn is_chain_address(token: &str) -> bool {
    let hex = token
        .strip_prefix("0x")
        .map(|hex| hex.trim_end_matches('…').trim_end_matches("..."));
    let is_hex = |hex: &str| {
        hex.len() >= 4
            && hex
                .chars()
                .all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | '…'))
    };
    hex.is_some_and(is_hex)
        || token
            .strip_suffix(".eth")
            .is_some_and(|name| !name.is_empty())
}

fn is_digest(token: &str) -> bool {
    token.len() >= 24 && token.chars().all(|c| c.is_ascii_hexdigit())
}

/// Returns true for times such as 8:30, 20h, 7am, 8.30pm, 9時半.
fn is_clock(token: &str) -> bool {
    let hour = token
        .trim_end_matches("am")
        .trim_end_matches("pm")
        .trim_end_matches("uhr");
    let has_suffix = hour.len() < token.len();
    let (hours, minutes) = hour.split_once([':', '.', 'h']).unwrap_or((hour, ""));
    let is_hour = is_number_below(hours, 25);
    is_hour
        && match minutes {
            "" => has_suffix || (hour.ends_with('h') && hours.len() + 1 == hour.len()),
            minutes => {
                minutes.len() == 2
                    && is_number_below(minutes, 60)
                    && (has_suffix || !hour.contains('.'))
            }
        }
}

fn is_date(token: &str) -> bool {
    let parts: Vec<&str> = token
        .split(['-', '/', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    let separators = token
        .chars()
        .filter(|c| matches!(c, '-' | '/' | '.'))
        .count();
    (2..=3).contains(&parts.len())
        && separators >= 2
        && parts.iter().all(|part| is_number_below(part, 10_000))
        && parts.iter().all(|part| matches!(part.len(), 1 | 2 | 4))
}

fn is_amount(token: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "$", "€", "£", "¥", "₩", "usdc", "usd", "eur", "eth", "円", "원", "bucks",
    ];
    SIGNS.iter().any(|sign| {
        let number = token
            .strip_prefix(sign)
            .or_else(|| token.strip_suffix(sign));
        number.is_some_and(|number| {
            !number.is_empty()
                && number
                    .chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | 'k'))
        })
    })
}

/// Returns true for durations such as 30min, 2h, 15m, 90s, 3d.
fn is_duration(token: &str) -> bool {
    let unit = token.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < token.len()
        && matches!(
            unit,
            "s" | "sec"
                | "secs"
                | "m"
                | "min"
                | "mins"
                | "hr"
                | "hrs"
                | "hours"
                | "d"
                | "days"
                | "w"
                | "분"
                | "시간"
                | "分"
                | "時間"
        )
}

fn is_arithmetic(token: &str) -> bool {
    let is_sign = |c: char| matches!(c, '+' | '*' | '/' | '^' | '=' | '×' | '÷' | '%' | '-');
    token.starts_with(|c: char| c.is_ascii_digit() || c == '(')
        && token.chars().any(is_sign)
        && token
            .chars()
            .any(|c| matches!(c, '+' | '*' | '^' | '=' | '×' | '÷' | '%'))
        && token
            .chars()
            .all(|c| c.is_ascii_digit() || is_sign(c) || matches!(c, '.' | ',' | '(' | ')' | 'x'))
}

fn is_flag(token: &str) -> bool {
    let name = token.strip_prefix("--").or_else(|| token.strip_prefix('-'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_path(token: &str) -> bool {
    let has_letters = token.chars().any(char::is_alphanumeric);
    let has_prefix = ["/", "~/", "./", "../", "c:\\", "d:\\"]
        .iter()
        .any(|start| token.starts_with(start));
    token == "~"
        || has_letters
            && (has_prefix || token.ends_with('/') || (token.contains('/') && has_file_name(token)))
}

fn has_file_name(token: &str) -> bool {
    token.rsplit('/').next().is_some_and(is_file)
}

fn is_file(token: &str) -> bool {
    const FILE_NAMES: [&str; 9] = [
        "dockerfile",
        "makefile",
        "readme",
        "gemfile",
        "procfile",
        "license",
        ".bashrc",
        ".gitignore",
        ".zshrc",
    ];
    if FILE_NAMES.contains(&token)
        || (token.starts_with('.')
            && token.len() > 3
            && token[1..].chars().all(|c| c.is_ascii_alphanumeric()))
    {
        return true;
    }
    token.rsplit_once('.').is_some_and(|(name, ending)| {
        (!name.is_empty() || token.starts_with("*."))
            && contains_word(FILE_EXTENSIONS, &ascii_prefix(ending))
    })
}

/// Returns the extension without a particle, which scripts without spaces append: `notes.txtを`.
fn ascii_prefix(ending: &str) -> String {
    let rest_is_unspaced = ending
        .chars()
        .skip_while(char::is_ascii_alphanumeric)
        .all(is_unspaced);
    if rest_is_unspaced {
        ending
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect()
    } else {
        ending.to_owned()
    }
}

fn is_issue(token: &str) -> bool {
    token
        .strip_prefix('#')
        .is_some_and(|number| is_number_below(number, 1_000_000))
}

fn is_number_below(text: &str, limit: u32) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|number| number < limit)
}

fn contains_word(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_whitespace().any(|entry| entry == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_tokens() {
        for (token, kind) in [
            ("https://example.org/a?b#c", Some("url")),
            ("example.org", Some("url")),
            ("(www.example.org),", Some("url")),
            ("bob@example.org", Some("email")),
            (
                "0x52908400098527886E0F7030069857D2E4169EE7",
                Some("address"),
            ),
            ("vitalik.eth", Some("address")),
            ("d41d8cd98f00b204e9800998ecf8427e", Some("digest")),
            ("8:30", Some("clock")),
            ("7am", Some("clock")),
            ("20h", Some("clock")),
            ("2026-01-31", Some("date")),
            ("12/05/2026", Some("date")),
            ("$12.50", Some("amount")),
            ("30€", Some("amount")),
            ("90min", Some("duration")),
            ("17*23", Some("sum")),
            ("--verbose", Some("flag")),
            ("~/src/", Some("path")),
            ("src/main.rs", Some("path")),
            ("notes.txt.", Some("file")),
            ("notes.txtを", Some("file")),
            ("*.log", Some("file")),
            (".bashrc", Some("file")),
            ("`ls`", Some("code")),
            ("#42", Some("issue")),
            ("and/or", None),
            ("e.g.", None),
            ("hello...", None),
            ("1.5", None),
            ("don't", None),
        ] {
            assert_eq!(token_kind(token), kind, "{token}");
        }
    }
}
