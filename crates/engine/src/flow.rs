//! Information flow: decides what a call may do from the labels of everything its agent has read,
//! not from the text itself (B101 to B103).

use std::collections::HashSet;
use std::sync::Arc;

use lango_domain::event::{Event, EventBody};
use lango_domain::{Content, Destination, Label, OutgoingData};
use lango_text::sanitize::one_line;
use serde_json::Value;

/// Words without meaning. A query may contain a few of them in addition to the user's own words.
const FILLERS: [&str; 32] = [
    "a", "about", "an", "and", "are", "at", "by", "for", "from", "how", "http", "https", "in",
    "info", "is", "it", "latest", "news", "of", "on", "or", "please", "the", "this", "to", "today",
    "was", "what", "when", "where", "with", "www",
];
const MAX_FILLERS: usize = 6;
/// The word limit for outgoing data. More words could encode information by their choice alone.
const MAX_WORDS: usize = 24;
/// Endings that distinguish forms of the same word.
const WORD_ENDINGS: [&str; 7] = ["", "s", "es", "e", "d", "ed", "ing"];
const MIN_STEM_LEN: usize = 4;
/// The separators that may occur between and around words.
const SEPARATORS: [&str; 12] = [
    "", " ", "-", ", ", ". ", ": ", "/", "'", "?", ".", "\"", "\n",
];

/// Verbs that precede a command that is to be run.
const ORDER_VERBS: [&str; 5] = ["run", "execute", "start", "launch", "forget"];
/// Words that may follow a command in the same sentence.
const CONTINUATION_WORDS: [&str; 3] = ["and", "then", "please"];
/// Words that negate an order.
const NEGATION_WORDS: [&str; 6] = ["not", "never", "don't", "dont", "don’t", "without"];
/// Pairs of quotation marks.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')];

/// The text that the user typed in a session, excluding text that was piped in, read or recalled.
pub(crate) struct UserText {
    /// The requests as typed.
    raw_requests: Vec<String>,
    /// The requests as words separated by white space, without surrounding punctuation.
    request_tokens: Vec<Vec<String>>,
    words: HashSet<String>,
}

impl UserText {
    pub fn from_log(log: &[Arc<Event>]) -> Self {
        let typed = |event: &Arc<Event>| match &event.body {
            EventBody::User(Content { text, .. }) if event.label.is_plain() => Some(text.clone()),
            _ => None,
        };
        let typed: Vec<String> = log.iter().filter_map(typed).collect();
        let lower: Vec<String> = typed.iter().map(|text| text.to_lowercase()).collect();
        Self {
            raw_requests: typed,
            request_tokens: lower.iter().map(|text| tokenize(text)).collect(),
            words: lower.iter().flat_map(|text| split_words(text)).collect(),
        }
    }

    /// Returns true if the user typed these arguments: every text in them occurs in a request and is
    /// not negated there.
    pub fn contains_args(&self, args: &Value) -> bool {
        let texts = argument_texts(args);
        let requests = &self.raw_requests;
        let is_typed = |text: &String| requests.iter().any(|request| mentions(request, text));
        !texts.is_empty() && texts.iter().all(is_typed)
    }

    /// Returns true if the user typed this request.
    pub fn is_request(&self, text: &str) -> bool {
        self.raw_requests.iter().any(|typed| typed == text)
    }

    /// Returns true if the user ordered exactly this command. Ordinary text can often be executed
    /// (`make`, `. notes.txt`), so the command must follow a verb such as `run`, verbatim or in quotes.
    /// Arguments with a second text, such as another folder, are more than the user ordered.
    pub fn has_ordered(&self, args: &Value) -> bool {
        let texts = argument_texts(args);
        matches!(&texts[..], [text] if self.raw_requests.iter().any(|request| contains_order(request, text)))
    }

    /// Returns true if a request contains the text, word for word.
    fn contains_text(&self, text: &str) -> bool {
        let wanted = tokenize(&text.to_lowercase());
        !wanted.is_empty()
            && self
                .request_tokens
                .iter()
                .any(|request| request.windows(wanted.len()).any(|part| part == wanted))
    }

    /// Returns true if the data reveals nothing but the user's own text: its address and each word.
    fn contains_outgoing(&self, outgoing: &OutgoingData) -> bool {
        let is_address_typed = match &outgoing.to {
            // The owner of a page can assign a meaning to any choice of words in its addresses.
            Destination::Host(host) => return self.contains_address(host, &outgoing.data),
            // The order of words could also encode information for an agent.
            Destination::Agent(name) => {
                self.contains_text(name) && self.contains_in_order(&outgoing.data)
            }
            Destination::Configured(_) => true,
        };
        let mut fillers = 0;
        let is_typed = |word: String| {
            let is_filler = FILLERS.contains(&word.as_str());
            fillers += usize::from(is_filler);
            is_filler || self.contains_word(&word)
        };
        let data = outgoing.data.to_lowercase();
        is_address_typed
            && split_words(&data).count() <= MAX_WORDS
            && data
                .split(char::is_alphanumeric)
                .all(|between| SEPARATORS.contains(&between))
            && split_words(&data).all(is_typed)
            && fillers <= MAX_FILLERS
    }

    /// Returns true if a request contains the whole address; the scheme and a fragment may be missing.
    fn contains_address(&self, host: &str, address: &str) -> bool {
        let typed = self
            .raw_requests
            .iter()
            .flat_map(|request| request.split_whitespace());
        let wanted = split_address(address.trim());
        let port = wanted.0.strip_prefix(&host.to_lowercase());
        let is_for_host =
            !host.is_empty() && port.is_some_and(|port| port.is_empty() || port.starts_with(':'));
        is_for_host
            && typed
                .map(|word| split_address(word.trim_matches(is_punctuation)))
                .any(|typed| typed == wanted)
    }

    /// Returns the web addresses in the requests.
    pub fn addresses(&self) -> Vec<String> {
        let words = self
            .raw_requests
            .iter()
            .flat_map(|request| request.split_whitespace());
        words
            .map(|word| word.trim_matches(is_punctuation))
            .filter(|word| {
                let lower = word.to_lowercase();
                lower.starts_with("http://") || lower.starts_with("https://")
            })
            .map(str::to_owned)
            .collect()
    }

    /// Returns true if a request contains the words of a text in the same order, ignoring fillers.
    fn contains_in_order(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let wanted: Vec<String> = split_words(&text)
            .filter(|word| !FILLERS.contains(&word.as_str()))
            .collect();
        self.raw_requests.iter().any(|request| {
            let request = request.to_lowercase();
            let mut typed = split_words(&request);
            wanted
                .iter()
                .all(|word| typed.any(|typed| typed == *word || is_inflection_of(word, &typed)))
        })
    }

    /// Returns true if the user typed the word or an inflection of it.
    fn contains_word(&self, word: &str) -> bool {
        self.words.contains(word)
            || word.chars().all(char::is_alphabetic)
                && self.words.iter().any(|typed| is_inflection_of(word, typed))
    }
}

/// Returns true if both are forms of one word that differ in an ordinary ending. Arbitrary endings
/// could encode information.
fn is_inflection_of(word: &str, other: &str) -> bool {
    let shared = word
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let is_ending = |text: &str| {
        text.get(shared..)
            .is_some_and(|ending| WORD_ENDINGS.contains(&ending))
    };
    shared >= MIN_STEM_LEN && is_ending(word) && is_ending(other)
}

/// Returns true if a request contains a text, ignoring white space and letter case.
fn mentions(request: &str, text: &str) -> bool {
    let normalize = |text: &str| {
        text.to_lowercase()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (request, text) = (normalize(request), normalize(text));
    let is_word = |c: char| c.is_alphanumeric();
    let is_mention = |at: usize| {
        let (before, after) = (&request[..at], &request[at + text.len()..]);
        let sentence = before
            .rsplit(['.', '!', '?', ';'])
            .next()
            .unwrap_or_default();
        !before.ends_with(is_word)
            && !after.starts_with(is_word)
            && !tokenize(sentence)
                .iter()
                .any(|word| NEGATION_WORDS.contains(&word.as_str()))
    };
    text.contains(is_word) && request.match_indices(&text).any(|(at, _)| is_mention(at))
}

/// Returns true if a request orders this command, letter for letter.
fn contains_order(request: &str, text: &str) -> bool {
    let text = text.trim();
    !text.is_empty()
        && request
            .match_indices(text)
            .any(|(at, _)| is_ordered(&request[..at], &request[at + text.len()..]))
}

/// Returns true if the command between `before` and `after` is an order.
fn is_ordered(before: &str, after: &str) -> bool {
    let quotes = QUOTES
        .iter()
        .find(|(open, close)| before.ends_with(*open) && after.starts_with(*close));
    let sentence = before.trim_end_matches(|c| quotes.is_some_and(|(open, _)| c == *open));
    let line = sentence
        .rsplit(['\n', '?', '!'])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let words = tokenize(&line);
    let is_order = |word: &String| ORDER_VERBS.contains(&word.as_str());
    let is_negated = words
        .iter()
        .any(|word| NEGATION_WORDS.contains(&word.as_str()));
    let has_verb = match quotes {
        Some(_) => words.iter().any(is_order),
        None => {
            before.ends_with([' ', '\t'])
                && words.last().is_some_and(is_order)
                && ends_command(after)
        }
    };
    has_verb && !is_negated
}

/// Returns true if an unquoted command ends before this text.
fn ends_command(after: &str) -> bool {
    let mut rest = after.chars();
    match rest.next() {
        None | Some('\n') => true,
        Some('.' | ',' | ';' | ':' | '?' | '!') => rest.next().is_none_or(char::is_whitespace),
        Some(c) if c.is_whitespace() => after
            .split_whitespace()
            .next()
            .is_none_or(|word| CONTINUATION_WORDS.contains(&word.trim_end_matches(','))),
        Some(_) => false,
    }
}

/// Splits an address into its host, in lower case, and the rest. Drops the fragment, which is not
/// sent.
fn split_address(address: &str) -> (String, &str) {
    let address = address.split('#').next().unwrap_or_default();
    let scheme = ["https://", "http://"].into_iter().find(|scheme| {
        address
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let address = scheme.map_or(address, |scheme| &address[scheme.len()..]);
    let end = address.find(['/', '?']).unwrap_or(address.len());
    let rest = &address[end..];
    (
        address[..end].to_lowercase(),
        if rest == "/" { "" } else { rest },
    )
}

/// The reasons to ask about a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Concerns {
    /// Untrusted sources that may have caused the call.
    pub tainted_by: Vec<String>,
    /// Private content that the call may send out.
    pub leak: Option<Leak>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Leak {
    pub outgoing: OutgoingData,
    pub private: Vec<String>,
}

impl Concerns {
    pub fn is_empty(&self) -> bool {
        self.tainted_by.is_empty() && self.leak.is_none()
    }

    /// Returns the warning that the approval question starts with.
    pub fn warning(&self) -> String {
        let mut lines = String::new();
        if !self.tainted_by.is_empty() {
            lines += &format!(
                "CAREFUL: this comes after reading {}\n",
                self.tainted_by.join(", ")
            );
        }
        if let Some(Leak {
            outgoing: OutgoingData { to, data },
            private,
        }) = &self.leak
        {
            lines += &format!(
                "SENDS DATA OUT, after reading {}\nto {to}: {data}\n",
                private.join(", ")
            );
        }
        lines
    }
}

/// Returns the leak if a call may send private content out. `allows` returns true for hosts that the
/// settings allow.
pub(crate) fn find_leak(
    outgoing: Option<OutgoingData>,
    label: &Label,
    user_text: &UserText,
    allows: impl Fn(&str) -> bool,
) -> Option<Leak> {
    let outgoing = outgoing.filter(|_| label.is_private())?;
    let is_allowed_host = match &outgoing.to {
        Destination::Host(name) | Destination::Agent(name) => allows(name),
        Destination::Configured(hosts) => hosts.iter().all(|host| allows(host)),
    };
    let is_allowed = is_allowed_host || user_text.contains_outgoing(&outgoing);
    (!is_allowed).then(|| Leak {
        outgoing,
        private: label.private_sources().to_vec(),
    })
}

/// Returns the citation of a call: its tool and its first text argument.
pub(crate) fn cite_call(tool: &str, args: &Value) -> String {
    let first = args
        .as_object()
        .and_then(|args| args.values().find_map(Value::as_str));
    first.map_or_else(
        || tool.to_owned(),
        |first| {
            format!(
                "{tool} {}",
                one_line(first).chars().take(80).collect::<String>()
            )
        },
    )
}

/// Returns every text in the arguments of a call.
pub(crate) fn argument_texts(args: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect_texts(args, &mut texts);
    texts
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

/// Splits a text at white space and trims the punctuation around each word.
fn tokenize(text: &str) -> Vec<String> {
    let bare = text
        .split_whitespace()
        .map(|word| word.trim_matches(is_punctuation).to_owned());
    bare.filter(|word| !word.is_empty()).collect()
}

fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        '`' | '"' | '\'' | '“' | '”' | '‘' | '’' | ',' | ';' | ':' | '?' | '!' | '(' | ')' | '.'
    )
}

/// Splits a text into runs of letters and digits.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use lango_domain::event::{Author, Branch, NewEvent, SessionId, TurnId};
    use serde_json::json;

    fn event(text: &str, label: Label) -> Arc<Event> {
        let draft = NewEvent {
            turn: TurnId::new("t"),
            author: Author::User,
            branch: Branch::new("b"),
            at: Timestamp::UNIX_EPOCH,
            label,
            body: EventBody::User(text.into()),
        };
        Arc::new(draft.into_event(SessionId::new("s"), 1))
    }

    fn typed(text: &str) -> UserText {
        UserText::from_log(&[event(text, Label::default())])
    }

    /// B102
    #[test]
    fn only_typed_arguments_are_the_users_own() {
        let user = typed("Please run `cargo test --workspace`, then show a.txt.");
        assert!(user.contains_args(&json!({ "command": "cargo test --workspace", "seconds": 5 })));
        assert!(user.contains_args(&json!({ "path": "a.txt" })));
        for other in [
            json!({ "command": ". a.txt" }),
            json!({ "command": "cargo test --workspace; rm -rf ~" }),
            json!({ "command": "argo test" }),
            json!({ "command": "cargo" , "more": "evil" }),
            json!({ "command": "" }),
            json!({}),
        ] {
            assert!(!user.contains_args(&other), "{other}");
        }
        let negated = typed("Never run the script release.sh! Always ask.");
        assert!(!negated.contains_args(&json!({ "content": "run the script release.sh" })));
        assert!(
            !negated.contains_args(&json!({ "content": "run the script `release.sh`; always" }))
        );
        let piped =
            UserText::from_log(&[event("rm -rf build", Label::untrusted("standard input"))]);
        assert!(!piped.contains_args(&json!({ "command": "rm -rf build" })));
    }

    /// B102
    #[test]
    fn finds_the_addresses_that_the_user_typed() {
        let text = typed("open http://127.0.0.1:80/a, then (HTTPS://example.org). not ftp://x");
        assert_eq!(
            text.addresses(),
            ["http://127.0.0.1:80/a", "HTTPS://example.org"]
        );
        let piped = event("see http://127.0.0.1/", Label::untrusted("standard input"));
        assert!(UserText::from_log(&[piped]).addresses().is_empty());
    }

    #[test]
    fn only_a_command_that_the_user_ordered_passes() {
        for (request, command) in [
            (
                "what does notes.txt say? then run `make check`",
                "make check",
            ),
            ("Run the command \"make check\" for me", "make check"),
            ("run make check, then read a.txt", "make check"),
            ("Please run make check and tell me what fails", "make check"),
            ("run ./a.sh", "./a.sh"),
            ("start python3 -m http.server.", "python3 -m http.server"),
            ("first run `make`, then `make check`", "make check"),
        ] {
            assert!(
                typed(request).has_ordered(&json!({ "command": command, "timeout": 5 })),
                "{request}: {command}"
            );
        }
        for (request, command) in [
            ("please make a summary of notes.txt", "make"),
            ("please make notes.txt shorter", "make notes.txt"),
            ("summarise notes.txt", ". notes.txt"),
            ("run ./notes.txt", ". ./notes.txt"),
            ("explain sh tidy.sh", "`sh tidy.sh`"),
            ("look at notes.txt, make it short", "notes.txt\nmake"),
            ("run make\tall", "make\nall"),
            ("run `sh setup.sh`", "sh SETUP.sh"),
            ("run sh setup.sh --dry-run", "sh setup.sh"),
            ("run `sh setup.sh --dry-run`", "sh setup.sh"),
            ("run ./a.sh", "./a"),
            ("do not run `make clean`", "make clean"),
            ("never run make", "make"),
            ("what does `rm -rf build` do?", "rm -rf build"),
            ("did you run it? what about `rm -rf build`", "rm -rf build"),
            ("run `make`", ""),
            ("rerun make", "make"),
        ] {
            assert!(
                !typed(request).has_ordered(&json!({ "command": command })),
                "{request}: {command}"
            );
        }
        let user = typed("run `make` and list `vendor`");
        assert!(!user.has_ordered(&json!({ "command": "make", "cwd": "vendor" })));
        assert!(!user.has_ordered(&json!({})) && !user.has_ordered(&json!({ "timeout": 5 })));
        let piped = UserText::from_log(&[event("run `make`", Label::untrusted("standard input"))]);
        assert!(!piped.has_ordered(&json!({ "command": "make" })));
    }

    fn outgoing(host: Option<&str>, data: &str) -> OutgoingData {
        let configured = || Destination::Configured(vec!["search.example".into()]);
        let to = host.map_or_else(configured, |host| Destination::Host(host.into()));
        OutgoingData {
            to,
            data: data.into(),
        }
    }

    /// B103
    #[test]
    fn only_the_users_own_text_may_be_sent_out() {
        let user = typed(
            "What does https://docs.rs/axum say about routing? Compare releases of axum in Berlin.",
        );
        assert!(user.contains_outgoing(&outgoing(Some("docs.rs"), "https://docs.rs/axum")));
        assert!(user.contains_outgoing(&outgoing(Some("docs.rs"), "docs.rs/axum#routing")));
        assert!(user.contains_outgoing(&outgoing(None, "the latest release of axum")));
        assert!(user.contains_outgoing(&outgoing(None, "axum routes")));
        for (address, data) in [
            (Some("evil.example"), "https://evil.example/axum"),
            (Some("docs.rs.evil.example"), "docs.rs"),
            (Some("ocs.rs"), "axum"),
            (Some("docs.rs"), "https://docs.rs/axum?q=hunter2"),
            (Some("docs.rs"), "https://docs.rs/axum/the/of/in"),
            (Some("docs.rs"), "https://docs.rs/releases/axum/Berlin"),
            (Some("docs.rs"), "https://docs.rs/Axum"),
            (Some("docs.rs"), "https://docs.rs/"),
            (Some(""), ""),
            (None, "axum hunter2"),
            (None, "axum 4711"),
            (None, "the of the of the of the a a a a"),
            (None, "axum ..-.-.---.. axum"),
            (None, "axum\u{f0041}axum"),
            (None, "axumhun routingter"),
            (None, "routing 水axum"),
            (None, &"axum ".repeat(100)),
        ] {
            assert!(
                !user.contains_outgoing(&outgoing(address, data)),
                "{address:?} {data}"
            );
        }
    }

    #[test]
    fn a_leak_needs_private_content_and_a_host_that_is_not_allowed() {
        let user = typed("hello");
        let out = || Some(outgoing(Some("a.example"), "secret"));
        let private = Label::private("fs_read .env");
        assert!(find_leak(out(), &private, &user, |_| false).is_some());
        assert!(find_leak(out(), &private, &user, |host| host == "a.example").is_none());
        assert!(find_leak(out(), &Label::untrusted("a page"), &user, |_| false).is_none());
        assert!(find_leak(None, &private, &user, |_| false).is_none());
    }
}
