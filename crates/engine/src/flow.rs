//! What a call may do given what its agent has read: labels decide, not words (B101 to B103).

use std::collections::HashSet;
use std::sync::Arc;

use lango_domain::event::{Event, EventBody};
use lango_domain::text::one_line;
use lango_domain::{Destination, Label, OutgoingData};
use serde_json::Value;

/// Words that say nothing: a query may hold a few of them beside the user's own.
const FILLERS: [&str; 32] = [
    "a", "about", "an", "and", "are", "at", "by", "for", "from", "how", "http", "https", "in",
    "info", "is", "it", "latest", "news", "of", "on", "or", "please", "the", "this", "to", "today",
    "was", "what", "when", "where", "with", "www",
];
const MAX_FILLERS: usize = 6;
/// What is longer, or has more between its words, could tell something by that alone.
const MAX_WORDS: usize = 24;
/// Word forms: what may stand behind a stem.
const WORD_ENDINGS: [&str; 7] = ["", "s", "es", "e", "d", "ed", "ing"];
const MIN_STEM_LEN: usize = 4;
/// What may stand between words and around them.
const SEPARATORS: [&str; 12] = [
    "", " ", "-", ", ", ". ", ": ", "/", "'", "?", ".", "\"", "\n",
];

/// Words that a command stands behind when it is to be run.
const ORDER_VERBS: [&str; 5] = ["run", "execute", "start", "launch", "forget"];
/// Words with which a sentence goes on behind a command.
const CONTINUATION_WORDS: [&str; 3] = ["and", "then", "please"];
/// Words that turn an order round.
const NEGATION_WORDS: [&str; 6] = ["not", "never", "don't", "dont", "don’t", "without"];
/// What is put around words to set them apart.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')];

/// The user's own words in a session: what they typed, not what was piped in, read or recalled.
pub(crate) struct UserText {
    /// Each request as it was typed.
    raw_requests: Vec<String>,
    /// Each request as words between white space, without quotes and punctuation around them.
    request_tokens: Vec<Vec<String>>,
    words: HashSet<String>,
}

impl UserText {
    pub fn from_log(log: &[Arc<Event>]) -> Self {
        let typed = |event: &Arc<Event>| match &event.body {
            EventBody::User { text } if event.label.is_plain() => Some(text.clone()),
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

    /// Whether the user said these arguments: every text among them stands in a request as it is, and nothing before it
    /// takes it back.
    pub fn contains_args(&self, args: &Value) -> bool {
        let texts = argument_texts(args);
        let is_said = |text: &String| {
            self.raw_requests
                .iter()
                .any(|request| mentions(request, text))
        };
        !texts.is_empty() && texts.iter().all(is_said)
    }

    /// Whether the user typed this request.
    pub fn is_request(&self, text: &str) -> bool {
        self.raw_requests.iter().any(|typed| typed == text)
    }

    /// Whether the user told to do exactly this. Much of what people say could be run (`make`, `. notes.txt`), so words
    /// that merely stand in a request are no order: they stand behind a word such as `run`, as they are, or in quotes
    /// behind it. What has a second text, such as another folder, is more than was said.
    pub fn has_ordered(&self, args: &Value) -> bool {
        let texts = argument_texts(args);
        matches!(&texts[..], [text] if self.raw_requests.iter().any(|request| contains_order(request, text)))
    }

    /// Whether a request holds the text, word for word.
    fn contains_text(&self, text: &str) -> bool {
        let wanted = tokenize(&text.to_lowercase());
        !wanted.is_empty()
            && self
                .request_tokens
                .iter()
                .any(|request| request.windows(wanted.len()).any(|part| part == wanted))
    }

    /// Whether sending this tells nothing but what the user said: its address, and each of its words.
    fn contains_outgoing(&self, outgoing: &OutgoingData) -> bool {
        let knows_address = match &outgoing.to {
            // Whoever made a page knows what a choice of words in its address stands for, whosever words they are.
            Destination::Host(host) => return self.contains_address(host, &outgoing.data),
            // The order of words could tell an agent something, too.
            Destination::Agent(name) => {
                self.contains_text(name) && self.contains_in_order(&outgoing.data)
            }
            Destination::Configured(_) => true,
        };
        let mut fillers = 0;
        let is_known = |word: String| {
            let is_filler = FILLERS.contains(&word.as_str());
            fillers += usize::from(is_filler);
            is_filler || self.contains_word(&word)
        };
        let data = outgoing.data.to_lowercase();
        knows_address
            && split_words(&data).count() <= MAX_WORDS
            && data
                .split(char::is_alphanumeric)
                .all(|between| SEPARATORS.contains(&between))
            && split_words(&data).all(is_known)
            && fillers <= MAX_FILLERS
    }

    /// Whether a request holds the whole address, with or without what people leave out of one.
    fn contains_address(&self, host: &str, address: &str) -> bool {
        let said = self
            .raw_requests
            .iter()
            .flat_map(|request| request.split_whitespace());
        let wanted = split_address(address.trim());
        let port = wanted.0.strip_prefix(&host.to_lowercase());
        let is_its =
            !host.is_empty() && port.is_some_and(|port| port.is_empty() || port.starts_with(':'));
        is_its
            && said
                .map(|word| split_address(word.trim_matches(is_punctuation)))
                .any(|said| said == wanted)
    }

    /// Whether a request holds the words of a text in their order, leaving fillers aside.
    fn contains_in_order(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let wanted: Vec<String> = split_words(&text)
            .filter(|word| !FILLERS.contains(&word.as_str()))
            .collect();
        self.raw_requests.iter().any(|request| {
            let request = request.to_lowercase();
            let mut said = split_words(&request);
            wanted
                .iter()
                .all(|word| said.any(|said| said == *word || is_inflection_of(word, &said)))
        })
    }

    /// Whether the user said the word, in this or in a nearly equal form.
    fn contains_word(&self, word: &str) -> bool {
        self.words.contains(word)
            || word.chars().all(char::is_alphabetic)
                && self.words.iter().any(|said| is_inflection_of(word, said))
    }
}

/// Whether both are forms of one word: they differ in an ordinary ending. Free endings could spell something.
fn is_inflection_of(word: &str, said: &str) -> bool {
    let shared = word
        .bytes()
        .zip(said.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let is_ending = |text: &str| {
        text.get(shared..)
            .is_some_and(|ending| WORD_ENDINGS.contains(&ending))
    };
    shared >= MIN_STEM_LEN && is_ending(word) && is_ending(said)
}

/// Whether a request says a text as it is, but for white space and letter case.
fn mentions(request: &str, text: &str) -> bool {
    let plain = |text: &str| {
        text.to_lowercase()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (request, text) = (plain(request), plain(text));
    let is_word = |c: char| c.is_alphanumeric();
    let is_whole = |at: usize| {
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
    text.contains(is_word) && request.match_indices(&text).any(|(at, _)| is_whole(at))
}

/// Whether a request tells to do this, letter for letter.
fn contains_order(request: &str, text: &str) -> bool {
    let text = text.trim();
    !text.is_empty()
        && request
            .match_indices(text)
            .any(|(at, _)| is_ordered(&request[..at], &request[at + text.len()..]))
}

/// Whether what stands between these is an order.
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
    let said = tokenize(&line);
    let is_order = |word: &String| ORDER_VERBS.contains(&word.as_str());
    let is_refused = said
        .iter()
        .any(|word| NEGATION_WORDS.contains(&word.as_str()));
    let is_told = match quotes {
        Some(_) => said.iter().any(is_order),
        None => {
            before.ends_with([' ', '\t'])
                && said.last().is_some_and(is_order)
                && ends_command(after)
        }
    };
    is_told && !is_refused
}

/// Whether a command without quotes ends where this begins.
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

/// Host and the rest of an address. The place within a page stays here, and a host has no capital letters.
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

/// What is worrying about a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Concerns {
    /// Sources that may have wanted the call.
    pub tainted_by: Vec<String>,
    /// Private content that may leave, and where to.
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

    /// The lines that a question begins with.
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

/// Whether private content may leave with a call. `allows` says which hosts the settings allow.
pub(crate) fn find_leak(
    outgoing: Option<OutgoingData>,
    label: &Label,
    words: &UserText,
    allows: impl Fn(&str) -> bool,
) -> Option<Leak> {
    let outgoing = outgoing.filter(|_| label.is_private())?;
    let is_allowed_host = match &outgoing.to {
        Destination::Host(name) | Destination::Agent(name) => allows(name),
        Destination::Configured(hosts) => hosts.iter().all(|host| allows(host)),
    };
    let is_allowed = is_allowed_host || words.contains_outgoing(&outgoing);
    (!is_allowed).then(|| Leak {
        outgoing,
        private: label.private_sources().to_vec(),
    })
}

/// A call as it is cited: its tool and what it was about.
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

/// Every text in a call's arguments.
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

/// Words between white space, without what a sentence puts around them.
fn tokenize(text: &str) -> Vec<String> {
    let bare = text
        .split_whitespace()
        .map(|word| word.trim_matches(is_punctuation).to_owned());
    bare.filter(|word| !word.is_empty()).collect()
}

/// What a sentence puts around words.
fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        '`' | '"' | '\'' | '“' | '”' | '‘' | '’' | ',' | ';' | ':' | '?' | '!' | '(' | ')' | '.'
    )
}

/// Runs of letters and digits.
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
            body: EventBody::User {
                text: text.to_owned(),
            },
        };
        Arc::new(draft.into_event(SessionId::new("s"), 1))
    }

    fn typed(text: &str) -> UserText {
        UserText::from_log(&[event(text, Label::default())])
    }

    /// B102
    #[test]
    fn only_the_users_own_words_name_a_call() {
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
        let refusing = typed("Never run the script release.sh! Always ask.");
        assert!(!refusing.contains_args(&json!({ "content": "run the script release.sh" })));
        assert!(
            !refusing.contains_args(&json!({ "content": "run the script `release.sh`; always" }))
        );
        let piped =
            UserText::from_log(&[event("rm -rf build", Label::untrusted("standard input"))]);
        assert!(!piped.contains_args(&json!({ "command": "rm -rf build" })));
    }

    /// B102
    #[test]
    fn only_an_order_of_the_users_own_lets_a_command_pass() {
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
    fn what_the_user_said_may_leave_and_nothing_else() {
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
    fn a_leak_needs_private_content_and_an_address_that_nobody_allowed() {
        let user = typed("hello");
        let out = || Some(outgoing(Some("a.example"), "secret"));
        let private = Label::private("fs_read .env");
        assert!(find_leak(out(), &private, &user, |_| false).is_some());
        assert!(find_leak(out(), &private, &user, |host| host == "a.example").is_none());
        assert!(find_leak(out(), &Label::untrusted("a page"), &user, |_| false).is_none());
        assert!(find_leak(None, &private, &user, |_| false).is_none());
    }
}
