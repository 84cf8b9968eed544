//! The targets of a delivery, as a job names them: `inbox`, `file:log.txt`, `webhook:https://…`.

use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

use lango_domain::Safety;
use lango_domain::event::SessionId;
use lango_text::sanitize::{escape_hidden_chars, is_hidden, truncated_line};
use lango_text::suggest::did_you_mean;
use lettre::Address;
use url::Url;

/// The kinds of targets, with the form of each.
const KINDS: [(&str, &str); 7] = [
    ("inbox", "inbox"),
    ("session", "session:NAME"),
    ("file", "file:PATH"),
    ("webhook", "webhook:URL"),
    ("command", "command:LINE"),
    ("notify", "notify"),
    ("email", "email:ADDRESS"),
];
const MAX_TARGET_BYTES: usize = 2_000;
/// The same limit as for sessions that are named on the command line.
const MAX_SESSION_CHARS: usize = 200;
/// The number of targets that one job may have for its results, and again for its failures.
pub const MAX_TARGETS: usize = 8;

/// Where a message goes. [`fmt::Display`] prints the form that [`FromStr`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryTarget {
    /// The list that `lango inbox` shows.
    Inbox,
    /// A session of the same principal.
    Session(SessionId),
    /// A file of the workspace, to which the message is appended.
    File(String),
    Webhook(Url),
    /// A command line for the sandboxed shell, with the message as its input.
    Command(String),
    /// A notification on the desktop.
    Notify,
    Email(Address),
}

/// A target that cannot be used. The text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("delivery target `{}`: {reason}", truncated_line(.target, 80))]
pub struct InvalidTarget {
    pub target: String,
    pub reason: String,
}

impl FromStr for DeliveryTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let text = text.trim();
        parse(text).map_err(|reason| InvalidTarget {
            target: text.to_owned(),
            reason,
        })
    }
}

impl fmt::Display for DeliveryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inbox => f.write_str("inbox"),
            Self::Session(name) => write!(f, "session:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Webhook(url) => write!(f, "webhook:{url}"),
            Self::Command(line) => write!(f, "command:{line}"),
            Self::Notify => f.write_str("notify"),
            Self::Email(address) => write!(f, "email:{address}"),
        }
    }
}

impl DeliveryTarget {
    /// Parses the targets of a job. Repeated ones count once.
    pub fn parse_all<T: AsRef<str>>(texts: &[T]) -> Result<Vec<Self>, InvalidTarget> {
        let mut targets = Vec::new();
        for text in texts {
            let target: Self = text.as_ref().parse()?;
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        match targets.get(MAX_TARGETS) {
            None => Ok(targets),
            Some(target) => Err(InvalidTarget {
                target: target.to_string(),
                reason: format!("a job has at most {MAX_TARGETS} delivery targets"),
            }),
        }
    }

    /// Returns the level at which setting up this target is approved. Everything that leaves the
    /// machine or runs something is dangerous, because no user watches when it happens.
    pub fn safety(&self) -> Safety {
        match self {
            Self::Inbox | Self::Session(_) | Self::Notify => Safety::Safe,
            Self::File(_) => Safety::Moderate,
            Self::Webhook(_) | Self::Command(_) | Self::Email(_) => Safety::Dangerous,
        }
    }

    /// Returns the effect for the approval question when a job is created. Hides nothing: hidden
    /// characters are escaped.
    pub fn effect(&self) -> String {
        let effect = match self {
            Self::Inbox => "puts each result into the inbox".to_owned(),
            Self::Session(name) => format!("adds each result to the session `{name}`"),
            Self::File(path) => format!("appends each result to the file `{path}`"),
            Self::Webhook(url) => format!("sends each result to {url}"),
            Self::Command(line) => {
                format!("runs `{line}` in the sandbox, without network, with each result as input")
            }
            Self::Notify => "shows each result as a desktop notification".to_owned(),
            Self::Email(address) => format!("sends each result by e-mail to {address}"),
        };
        escape_hidden_chars(&effect)
    }

    /// Names the target in messages. Leaves out the path of a URL, which is often a secret.
    pub fn summary(&self) -> String {
        match self {
            Self::Webhook(url) => format!("webhook {}", url.host_str().unwrap_or_default()),
            other => truncated_line(&other.to_string(), 80),
        }
    }
}

fn parse(text: &str) -> Result<DeliveryTarget, String> {
    if text.is_empty() {
        return Err(format!("it is empty; {}", known_forms()));
    }
    if text.len() > MAX_TARGET_BYTES {
        return Err(format!("it is longer than {MAX_TARGET_BYTES} bytes"));
    }
    if text.chars().any(|c| c == '\n' || is_hidden(c)) {
        return Err(
            "it contains line ends or invisible characters; write it on one line".to_owned(),
        );
    }
    let (kind, value) = match text.split_once(':') {
        Some((kind, value)) => (kind.trim(), value.trim()),
        None => (text, ""),
    };
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let Some((_, form)) = known else {
        return Err(unknown_kind(kind, text));
    };
    match (form.contains(':'), value.is_empty()) {
        (true, true) => return Err(format!("write it as `{form}`")),
        (false, _) if text.contains(':') => return Err(format!("write only `{form}`")),
        _ => {}
    }
    Ok(match kind {
        "session" => DeliveryTarget::Session(parse_session(value)?),
        "file" => DeliveryTarget::File(parse_path(value)?),
        "webhook" => DeliveryTarget::Webhook(parse_webhook(value)?),
        "command" => DeliveryTarget::Command(value.to_owned()),
        "notify" => DeliveryTarget::Notify,
        "email" => DeliveryTarget::Email(parse_address(value)?),
        _ => DeliveryTarget::Inbox,
    })
}

fn known_forms() -> String {
    let forms: Vec<String> = KINDS.iter().map(|(_, form)| format!("`{form}`")).collect();
    format!("write one of {}", forms.join(", "))
}

/// Explains an unknown kind, and recognizes values that only lack their kind.
fn unknown_kind(kind: &str, text: &str) -> String {
    let meant = if matches!(kind, "http" | "https") {
        Some(format!("did you mean `webhook:{text}`?"))
    } else if kind == "mailto" {
        let (_, address) = text.split_once(':').unwrap_or_default();
        Some(format!("did you mean `email:{}`?", address.trim()))
    } else if text.parse::<Address>().is_ok() {
        Some(format!("did you mean `email:{text}`?"))
    } else if !text.contains(':') && text.contains(['/', '.']) {
        Some(format!("did you mean `file:{text}`?"))
    } else {
        did_you_mean(&kind.to_lowercase(), KINDS.map(|(name, _)| name))
    };
    let kind = truncated_line(kind, 40);
    match meant {
        Some(meant) => format!("`{kind}` is not a kind of target; {meant}"),
        None => format!("`{kind}` is not a kind of target; {}", known_forms()),
    }
}

fn parse_session(name: &str) -> Result<SessionId, String> {
    if name.chars().count() > MAX_SESSION_CHARS {
        return Err(format!(
            "a session name has at most {MAX_SESSION_CHARS} characters"
        ));
    }
    Ok(SessionId::new(name))
}

/// Rejects paths that cannot name a file of the workspace. The rest is checked when it is opened.
fn parse_path(path: &str) -> Result<String, String> {
    if path.ends_with('/') {
        return Err("it names a folder; give the path of a file".to_owned());
    }
    if path == "~" || path.starts_with("~/") {
        return Err("give a path relative to the workspace".to_owned());
    }
    let mut depth = 0_i32;
    for part in Path::new(path).components() {
        depth += match part {
            Component::Normal(_) => 1,
            Component::ParentDir => -1,
            _ => 0,
        };
        if depth < 0 {
            return Err("it leads out of the workspace".to_owned());
        }
    }
    if depth == 0 {
        return Err("give the path of a file, relative to the workspace".to_owned());
    }
    Ok(path.to_owned())
}

fn parse_webhook(value: &str) -> Result<Url, String> {
    let url = Url::parse(value)
        .map_err(|_| "that is not a URL; write `webhook:https://host/path`".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("only http and https URLs with a host can be used".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a user name or password cannot be used".to_owned());
    }
    Ok(url)
}

fn parse_address(value: &str) -> Result<Address, String> {
    value.parse().map_err(|_| {
        "that is not an e-mail address; write it as `email:name@example.com`".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_round_trip() {
        for text in [
            "inbox",
            "session:daily plan",
            "file:notes/log.md",
            "file:/srv/log.md",
            "webhook:https://example.com/hook?key=1",
            "command:sort -u | tee out.txt",
            "command:a:b",
            "notify",
            "email:ann@example.com",
        ] {
            let target: DeliveryTarget = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        assert_eq!(" inbox ".parse(), Ok(DeliveryTarget::Inbox));
    }

    #[test]
    fn invalid_targets_say_what_to_write() {
        for (text, expected) in [
            ("", "it is empty; write one of `inbox`, `session:NAME`"),
            ("inbx", "did you mean `inbox`?"),
            ("Email:ann@example.com", "did you mean `email`?"),
            (
                "https://example.com/",
                "did you mean `webhook:https://example.com/`?",
            ),
            ("ann@example.com", "did you mean `email:ann@example.com`?"),
            (
                "mailto:ann@example.com",
                "did you mean `email:ann@example.com`?",
            ),
            ("notes/log.md", "did you mean `file:notes/log.md`?"),
            ("pigeon:home", "write one of"),
            ("inbox:mine", "write only `inbox`"),
            ("notify:", "write only `notify`"),
            ("session:", "write it as `session:NAME`"),
            ("file:notes/", "names a folder"),
            ("file:../x", "leads out of the workspace"),
            ("file:a/../../x", "leads out of the workspace"),
            ("file:~/x", "relative to the workspace"),
            ("file:.", "path of a file"),
            ("webhook:example.com", "not a URL"),
            ("webhook:ftp://example.com/", "only http and https"),
            (
                "webhook:https://ann:pw@example.com/",
                "user name or password",
            ),
            ("email:ann", "not an e-mail address"),
            (
                "email:ann@example.com, bob@example.com",
                "not an e-mail address",
            ),
            ("email:ann@example.com\r\nBcc: x@example.com", "line ends"),
            ("command:echo a\necho b", "line ends"),
            ("command:echo \u{202e}x", "invisible"),
            ("session:\u{7}", "invisible"),
        ] {
            let error = text.parse::<DeliveryTarget>().unwrap_err();
            assert!(error.reason.contains(expected), "{text:?}: {error}");
        }
        let long = format!("file:{}", "x".repeat(3_000));
        let error = long.parse::<DeliveryTarget>().unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }

    #[test]
    fn targets_of_a_job_are_counted_once_and_limited() {
        let targets = DeliveryTarget::parse_all(&["inbox", "notify", "inbox"]).unwrap();
        assert_eq!(targets, [DeliveryTarget::Inbox, DeliveryTarget::Notify]);
        let many: Vec<String> = (0..=MAX_TARGETS).map(|n| format!("file:{n}")).collect();
        let error = DeliveryTarget::parse_all(&many).unwrap_err();
        assert!(error.reason.contains("at most 8"), "{error}");
    }

    #[test]
    fn targets_that_leave_the_machine_or_run_something_are_dangerous() {
        for (text, level) in [
            ("inbox", Safety::Safe),
            ("session:a", Safety::Safe),
            ("notify", Safety::Safe),
            ("file:a", Safety::Moderate),
            ("webhook:https://example.com/T0/secret", Safety::Dangerous),
            ("command:true", Safety::Dangerous),
            ("email:ann@example.com", Safety::Dangerous),
        ] {
            let target: DeliveryTarget = text.parse().unwrap();
            assert_eq!(target.safety(), level, "{text}");
            assert!(!target.summary().contains("secret"));
        }
    }
}
