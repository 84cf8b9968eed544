//! The approval policy: which calls run, which need approval, and which are denied.

use std::num::NonZeroU64;
use std::time::Duration;

use lango_domain::event::{Decider, Grant};
use lango_domain::pattern::{Wildcard, matches};
use lango_domain::{Intent, Safety};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The approval policy (`security.approval`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalPolicy {
    /// Calls that only read.
    pub safe: Verdict,
    /// Calls whose effect can be undone. Those of the file tools never leave the workspace.
    pub moderate: Verdict,
    /// Calls that may destroy data, spend money, publish, or contact other people.
    pub dangerous: Verdict,
    /// Rules for single tools. The first rule that matches decides, before the levels.
    pub rules: Vec<ApprovalRule>,
    /// Hosts that data may be sent to without approval after private content was read. `*.example.org`
    /// matches every subdomain of `example.org`. A remote agent is matched by its name.
    pub allow_hosts: Vec<String>,
    /// Seconds to wait for an approval before the call is denied.
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
    /// The call runs.
    Auto,
    /// The approver is asked. Without one, the call is denied.
    Ask,
    /// The call never runs.
    Deny,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRule {
    /// The tool's name; `*` matches any text, as in `fs_*`.
    pub tool: String,
    /// The command or path of the call, as in `git status*`; matches every call if not set. In a rule
    /// with `auto`, `*` matches neither characters that chain commands (`;`, `|`, `&`, `$`, `` ` `` …)
    /// nor `..`.
    #[serde(rename = "match", default)]
    pub matches: Option<String>,
    pub decision: Verdict,
}

impl ApprovalPolicy {
    /// Returns true if calls of this level run without an intent and without an approval event.
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

    /// Returns true if the deciding rule names exactly this subject, without a wildcard. The user wrote
    /// such a rule for this very call.
    pub(crate) fn has_exact_rule(&self, tool: &str, subject: &str) -> bool {
        let rule = self.rules.iter().find(|rule| rule.is_match(tool, subject));
        rule.is_some_and(|rule| rule.is_exactly(subject))
    }

    /// Returns true if data may be sent to a host after private content was read.
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

    /// Returns the verdict about reading a file.
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
    /// Returns true if the rule names this subject and no other.
    pub(crate) fn is_exactly(&self, subject: &str) -> bool {
        self.matches.as_deref() == Some(subject) && !subject.contains('*')
    }

    pub(crate) fn is_match(&self, tool: &str, subject: &str) -> bool {
        let wildcard = if self.decision == Verdict::Auto {
            Wildcard::Plain
        } else {
            Wildcard::Anything
        };
        // A rule about the contents of a folder also applies to the folder.
        let without_slash = subject.strip_suffix('/').unwrap_or(subject);
        let is_about = |pattern: &String| {
            matches(pattern, subject, wildcard) || matches(pattern, without_slash, wildcard)
        };
        matches(&self.tool, tool, Wildcard::Anything) && self.matches.as_ref().is_none_or(is_about)
    }
}

/// Returns true if a grant of the session covers a call. A pattern grant covers only calls for which
/// the tool offers a pattern, whatever their subject looks like.
pub(crate) fn grant_covers(grant: &Grant, args: &Value, intent: &Intent) -> bool {
    match grant {
        Grant::SameCall(granted) => granted == args,
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
    fn allows_hosts_by_name_or_below_a_domain() {
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

    /// B102: a rule with a wildcard was written for calls that the user asks for.
    #[test]
    fn only_a_rule_without_a_wildcard_is_exact() {
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
    fn a_pattern_covers_only_calls_that_offer_a_pattern() {
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
    fn the_first_matching_rule_decides_before_the_levels() {
        let rules = vec![
            rule("exec_*", "*rm -rf*", Verdict::Deny),
            rule("exec_shell", "git *", Verdict::Auto),
            rule("fs_*", "secret/*", Verdict::Ask),
        ];
        let policy = ApprovalPolicy {
            rules,
            ..ApprovalPolicy::default()
        };
        let evaluate = |tool, level, subject| policy.evaluate(tool, &intent(level, subject));
        assert_eq!(
            evaluate("exec_shell", Safety::Dangerous, "git log"),
            (Verdict::Auto, Decider::Rule)
        );
        assert_eq!(
            evaluate("exec_shell", Safety::Dangerous, "git x; rm -rf ~"),
            (Verdict::Deny, Decider::Rule)
        );
        assert_eq!(
            evaluate("exec_shell", Safety::Dangerous, "git log | sh"),
            (Verdict::Ask, Decider::Policy)
        );
        assert_eq!(
            evaluate("fs_write", Safety::Moderate, "secret/a/b"),
            (Verdict::Ask, Decider::Rule)
        );
        assert_eq!(
            evaluate("fs_write", Safety::Moderate, "a.txt"),
            (Verdict::Auto, Decider::Policy)
        );
    }
}
