//! Which calls run, which are asked about, which never run: levels, and rules for single tools.

use std::num::NonZeroU64;
use std::time::Duration;

use lango_domain::event::{Decider, Grant};
use lango_domain::pattern::{Wildcard, matches};
use lango_domain::{Intent, Safety};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `security.approval`: what happens to a call before it has an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalPolicy {
    /// Calls that only look.
    pub safe: Verdict,
    /// Calls whose effect can be taken back; those of the file tools never leave the workspace.
    pub moderate: Verdict,
    /// Calls that may destroy, spend, publish or reach other people.
    pub dangerous: Verdict,
    /// Rules for single tools; the first that fits decides, before the levels do.
    pub rules: Vec<ApprovalRule>,
    /// Hosts that data may be sent to without a question even after private content was read; `*.example.org` stands for
    /// every host below it. An agent in another process goes by its name.
    pub allow_hosts: Vec<String>,
    /// Seconds that a question waits for its answer; then the call is denied.
    pub wait_seconds: NonZeroU64,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self {
            safe: Verdict::Auto,
            moderate: Verdict::Auto,
            dangerous: Verdict::Ask,
            rules: Vec::new(),
            allow_hosts: Vec::new(),
            wait_seconds: NonZeroU64::MIN.saturating_add(300 - 1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It runs.
    Auto,
    /// Whoever is there is asked; nobody there means no.
    Ask,
    /// It never runs.
    Deny,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRule {
    /// A tool's name; `*` stands for anything, as in `fs_*`.
    pub tool: String,
    /// What it is about, the command or the path, as in `git status*`; every call when it is not set. In a rule that
    /// allows, `*` does not stand for what chains commands (`;`, `|`, `&`, `$`, `` ` `` …) or climbs out of a folder (`..`).
    #[serde(rename = "match", default)]
    pub matches: Option<String>,
    pub decision: Verdict,
}

impl ApprovalPolicy {
    /// Whether calls of that level run without a look at what they are about, and without a word in the log.
    pub(crate) fn allows_without_check(&self, level: Safety) -> bool {
        level == Safety::Safe && self.rules.is_empty() && self.safe == Verdict::Auto
    }

    pub(crate) fn evaluate(&self, tool: &str, intent: &Intent) -> (Verdict, Decider) {
        match self
            .rules
            .iter()
            .find(|rule| rule.is_match(tool, &intent.subject))
        {
            Some(rule) => (rule.decision, Decider::Rule),
            None => (self.verdict_for_level(intent.level), Decider::Policy),
        }
    }

    /// Whether the rule that decides about a call names exactly what it is about: such words are the user's own.
    pub(crate) fn has_exact_rule(&self, tool: &str, subject: &str) -> bool {
        let rule = self.rules.iter().find(|rule| rule.is_match(tool, subject));
        rule.is_some_and(|rule| rule.matches.as_deref() == Some(subject) && !subject.contains('*'))
    }

    /// Whether data may be sent to a host after private content was read.
    pub(crate) fn allows_host(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        let allows = |allowed: &String| {
            let allowed = allowed.to_lowercase();
            match allowed.strip_prefix("*.") {
                Some(domain) => host
                    .strip_suffix(domain)
                    .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                None => host == allowed,
            }
        };
        self.allow_hosts.iter().any(allows)
    }

    /// What happens to looks at a file, by rules and by level.
    pub fn for_read(&self, path: &str) -> Verdict {
        let intent = Intent {
            level: Safety::Safe,
            shows: String::new(),
            subject: path.to_owned(),
            pattern: None,
        };
        self.evaluate("fs_read", &intent).0
    }

    pub(crate) fn approval_timeout(&self) -> Duration {
        Duration::from_secs(self.wait_seconds.get())
    }

    fn verdict_for_level(&self, level: Safety) -> Verdict {
        match level {
            Safety::Safe => self.safe,
            Safety::Moderate => self.moderate,
            Safety::Dangerous => self.dangerous,
        }
    }
}

impl ApprovalRule {
    fn is_match(&self, tool: &str, subject: &str) -> bool {
        let star = if self.decision == Verdict::Auto {
            Wildcard::Plain
        } else {
            Wildcard::Anything
        };
        // A rule about what is in a folder is also about the folder.
        let plain = subject.strip_suffix('/').unwrap_or(subject);
        let is_about =
            |pattern: &String| matches(pattern, subject, star) || matches(pattern, plain, star);
        matches(&self.tool, tool, Wildcard::Anything) && self.matches.as_ref().is_none_or(is_about)
    }
}

/// Whether a permission of the session covers a call. A pattern holds for calls that are of a kind themselves: what a tool
/// offers no pattern for is never covered by one, whatever its words look like.
pub(crate) fn grant_covers(grant: &Grant, args: &Value, intent: &Intent) -> bool {
    match grant {
        Grant::SameCall(before) => before == args,
        Grant::Pattern(pattern) => {
            intent.pattern.is_some() && matches(pattern, &intent.subject, Wildcard::Plain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(level: Safety, subject: &str) -> Intent {
        Intent {
            level,
            shows: String::new(),
            subject: subject.to_owned(),
            pattern: None,
        }
    }

    fn rule(tool: &str, matches: &str, decision: Verdict) -> ApprovalRule {
        ApprovalRule {
            tool: tool.to_owned(),
            matches: Some(matches.to_owned()),
            decision,
        }
    }

    /// B103
    #[test]
    fn hosts_are_allowed_by_name_or_below_a_domain() {
        let allow_hosts = vec!["docs.rs".to_owned(), "*.example.org".to_owned()];
        let policy = ApprovalPolicy {
            allow_hosts,
            ..ApprovalPolicy::default()
        };
        for (host, is_allowed) in [
            ("docs.rs", true),
            ("DOCS.rs", true),
            ("a.docs.rs", false),
            ("a.example.org", true),
            ("example.org", false),
            ("evilexample.org", false),
            (".example.org", false),
        ] {
            assert_eq!(policy.allows_host(host), is_allowed, "{host}");
        }
    }

    /// B102: a rule with a star was written for the user's own wishes.
    #[test]
    fn only_a_rule_without_a_star_names_a_call() {
        let rules = vec![
            rule("exec_shell", "make", Verdict::Auto),
            rule("exec_shell", "git *", Verdict::Auto),
        ];
        let policy = ApprovalPolicy {
            rules,
            ..ApprovalPolicy::default()
        };
        assert!(policy.has_exact_rule("exec_shell", "make"));
        assert!(
            !policy.has_exact_rule("exec_shell", "git log")
                && !policy.has_exact_rule("exec_shell", "git *")
        );
    }

    /// B102
    #[test]
    fn a_pattern_covers_only_calls_that_are_of_a_kind() {
        let grant = Grant::Pattern("git log *".to_owned());
        let call = |pattern: Option<&str>| {
            let pattern = pattern.map(str::to_owned);
            Intent {
                pattern,
                ..intent(Safety::Dangerous, "git log --output=x")
            }
        };
        assert!(!grant_covers(&grant, &Value::Null, &call(None)));
        assert!(grant_covers(&grant, &Value::Null, &call(Some("git log *"))));
        assert!(!grant_covers(
            &Grant::Pattern("git diff *".to_owned()),
            &Value::Null,
            &call(Some("git log *"))
        ));
    }

    #[test]
    fn the_first_rule_that_fits_decides_before_the_levels() {
        let rules = vec![
            rule("exec_*", "*rm -rf*", Verdict::Deny),
            rule("exec_shell", "git *", Verdict::Auto),
            rule("fs_*", "secret/*", Verdict::Ask),
        ];
        let policy = ApprovalPolicy {
            rules,
            ..ApprovalPolicy::default()
        };
        let judge = |tool, level, subject| policy.evaluate(tool, &intent(level, subject));
        assert_eq!(
            judge("exec_shell", Safety::Dangerous, "git log"),
            (Verdict::Auto, Decider::Rule)
        );
        assert_eq!(
            judge("exec_shell", Safety::Dangerous, "git x; rm -rf ~"),
            (Verdict::Deny, Decider::Rule)
        );
        assert_eq!(
            judge("exec_shell", Safety::Dangerous, "git log | sh"),
            (Verdict::Ask, Decider::Policy)
        );
        assert_eq!(
            judge("fs_write", Safety::Moderate, "secret/a/b"),
            (Verdict::Ask, Decider::Rule)
        );
        assert_eq!(
            judge("fs_write", Safety::Moderate, "a.txt"),
            (Verdict::Auto, Decider::Policy)
        );
    }
}
