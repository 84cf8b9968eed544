//! The permission of a single turn, in addition to the settings of its runner: approver, rules, budget.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lango_domain::approval::Approver;
use lango_domain::event::Decider;
use lango_domain::failure::FailureCode;
use lango_domain::{Intent, Safety};

use crate::approval_policy::{ApprovalPolicy, ApprovalRule, Verdict};
use crate::limits::TurnLimits;

/// The permission of one turn. The default changes nothing.
#[derive(Clone, Default)]
pub struct TurnPermission {
    /// Answers the approval questions of the turn instead of the usual approver.
    pub approver: Option<Arc<dyn Approver>>,
    /// The time that each question waits for an answer, instead of `security.approval.waitSeconds`.
    pub approval_wait: Option<Duration>,
    /// Approval rules for this turn. They decide before the configured rules and levels, except that a
    /// call which the settings deny stays denied.
    pub rules: Vec<ApprovalRule>,
    pub budget: TurnBudget,
    /// Asked before every call that has an effect. Without one, every call may start.
    pub guard: Option<Arc<dyn CallGuard>>,
}

/// Decides whether the process may still have effects, such as one that works under a lease.
pub trait CallGuard: Send + Sync {
    /// Returns false if the call must not start. Then the turn is suspended.
    fn may_start(&self) -> BoxFuture<'_, bool>;
}

impl TurnPermission {
    /// Returns the verdict about a call of a turn with this permission, under the configured policy.
    pub fn verdict(&self, configured: &ApprovalPolicy, tool: &str, intent: &Intent) -> Verdict {
        let policy = TurnPolicy::new(configured.clone(), self.rules.clone(), None);
        policy.evaluate(tool, intent).0
    }
}

impl std::fmt::Debug for TurnPermission {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TurnPermission")
            .field("has_approver", &self.approver.is_some())
            .field("approval_wait", &self.approval_wait)
            .field("rules", &self.rules)
            .field("budget", &self.budget)
            .field("has_guard", &self.guard.is_some())
            .finish()
    }
}

/// The budget of one turn. A value above the configured limit has no effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnBudget {
    /// Input and output tokens.
    pub tokens: Option<NonZeroU64>,
    /// Cost in US dollars, as far as prices are known.
    pub usd: Option<f64>,
    /// Seconds, without the time spent waiting for approvals.
    pub seconds: Option<NonZeroU64>,
}

impl TurnBudget {
    /// Returns the limits, lowered to this budget.
    pub(crate) fn apply_to(&self, limits: &TurnLimits) -> TurnLimits {
        TurnLimits {
            tokens: lower(limits.tokens, self.tokens, NonZeroU64::min),
            usd: lower(limits.usd, self.usd_limit(), f64::min),
            seconds: self
                .seconds
                .map_or(limits.seconds, |seconds| seconds.min(limits.seconds)),
            ..limits.clone()
        }
    }

    /// Returns true if this budget, and not a setting, set the limit that a turn reached. `applied` are
    /// the limits of the turn.
    pub(crate) fn has_set(&self, code: FailureCode, applied: &TurnLimits) -> bool {
        match code {
            FailureCode::LimitTokens => self.tokens.is_some() && self.tokens == applied.tokens,
            FailureCode::LimitMoney => self.usd.is_some() && self.usd_limit() == applied.usd,
            FailureCode::LimitTime => self.seconds == Some(applied.seconds),
            _ => false,
        }
    }

    /// A cost that is not a number, or that is negative, allows nothing.
    fn usd_limit(&self) -> Option<f64> {
        self.usd.map(|usd| usd.max(0.0))
    }
}

fn lower<T>(limit: Option<T>, budget: Option<T>, min: impl Fn(T, T) -> T) -> Option<T> {
    match (limit, budget) {
        (Some(limit), Some(budget)) => Some(min(limit, budget)),
        (limit, budget) => limit.or(budget),
    }
}

/// The approval policy of one turn: the configured one and the turn's own rules.
pub(crate) struct TurnPolicy {
    configured: ApprovalPolicy,
    turn_rules: Vec<ApprovalRule>,
    approval_wait: Option<Duration>,
}

impl TurnPolicy {
    pub fn new(
        configured: ApprovalPolicy,
        turn_rules: Vec<ApprovalRule>,
        approval_wait: Option<Duration>,
    ) -> Self {
        Self {
            configured,
            turn_rules,
            approval_wait,
        }
    }

    /// Returns true if calls of this level run without an intent and without an approval event.
    pub fn allows_without_check(&self, level: Safety) -> bool {
        self.turn_rules.is_empty() && self.configured.allows_without_check(level)
    }

    pub fn evaluate(&self, tool: &str, intent: &Intent) -> (Verdict, Decider) {
        let configured = self.configured.evaluate(tool, intent);
        match self.turn_rule(tool, &intent.subject) {
            Some(rule) if configured.0 != Verdict::Deny => (rule.decision, Decider::Rule),
            _ => configured,
        }
    }

    /// Returns true if the deciding rule names exactly this subject, without a wildcard.
    pub fn has_exact_rule(&self, tool: &str, subject: &str) -> bool {
        match self.turn_rule(tool, subject) {
            Some(rule) => rule.is_exactly(subject),
            None => self.configured.has_exact_rule(tool, subject),
        }
    }

    /// Returns true if data may be sent to a host after private content was read. The rules of a turn
    /// allow no hosts.
    pub fn allows_host(&self, host: &str) -> bool {
        self.configured.allows_host(host)
    }

    pub fn approval_timeout(&self) -> Duration {
        self.approval_wait
            .unwrap_or_else(|| self.configured.approval_timeout())
    }

    fn turn_rule(&self, tool: &str, subject: &str) -> Option<&ApprovalRule> {
        self.turn_rules
            .iter()
            .find(|rule| rule.is_match(tool, subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(matches: &str, decision: Verdict) -> ApprovalRule {
        ApprovalRule {
            tool: "exec_shell".to_owned(),
            matches: Some(matches.to_owned()),
            decision,
        }
    }

    fn intent(subject: &str) -> Intent {
        Intent {
            level: Safety::Dangerous,
            shows: String::new(),
            subject: subject.to_owned(),
            pattern: None,
        }
    }

    /// B56
    #[test]
    fn a_budget_only_lowers_limits() {
        let limits = TurnLimits {
            tokens: NonZeroU64::new(100),
            ..TurnLimits::default()
        };
        let above = TurnBudget {
            tokens: NonZeroU64::new(101),
            usd: None,
            seconds: NonZeroU64::new(601),
        };
        assert_eq!(above.apply_to(&limits), limits);
        assert_eq!(TurnBudget::default().apply_to(&limits), limits);
        let below = TurnBudget {
            tokens: NonZeroU64::new(99),
            usd: Some(0.5),
            seconds: NonZeroU64::new(5),
        };
        let lowered = below.apply_to(&limits);
        assert_eq!(
            (lowered.tokens, lowered.usd, lowered.seconds.get()),
            (NonZeroU64::new(99), Some(0.5), 5)
        );
        assert!(below.has_set(FailureCode::LimitTokens, &lowered));
        assert!(!above.has_set(FailureCode::LimitTokens, &limits));
        assert!(!below.has_set(FailureCode::LimitRounds, &lowered));
    }

    #[test]
    fn a_cost_that_is_no_number_allows_nothing() {
        for usd in [f64::NAN, -1.0] {
            let budget = TurnBudget {
                usd: Some(usd),
                ..TurnBudget::default()
            };
            assert_eq!(
                budget.apply_to(&TurnLimits::default()).usd,
                Some(0.0),
                "{usd}"
            );
        }
    }

    #[test]
    fn rules_of_a_turn_decide_except_about_denied_calls() {
        let configured = ApprovalPolicy {
            rules: vec![
                rule("rm *", Verdict::Deny),
                rule("git *", Verdict::Ask),
                rule("make", Verdict::Auto),
            ],
            ..ApprovalPolicy::default()
        };
        let turn_rules = vec![
            rule("rm *", Verdict::Auto),
            rule("git log", Verdict::Auto),
            rule("make", Verdict::Deny),
        ];
        let policy = TurnPolicy::new(configured, turn_rules, None);
        for (subject, verdict) in [
            ("rm x", Verdict::Deny),
            ("git log", Verdict::Auto),
            ("git push", Verdict::Ask),
            ("make", Verdict::Deny),
        ] {
            let decision = policy.evaluate("exec_shell", &intent(subject));
            assert_eq!(decision, (verdict, Decider::Rule), "{subject}");
        }
        assert_eq!(
            policy.evaluate("exec_shell", &intent("ls")),
            (Verdict::Ask, Decider::Policy)
        );
        let denying = ApprovalPolicy {
            dangerous: Verdict::Deny,
            ..ApprovalPolicy::default()
        };
        let policy = TurnPolicy::new(denying, vec![rule("ls", Verdict::Auto)], None);
        let decision = policy.evaluate("exec_shell", &intent("ls"));
        assert_eq!(decision, (Verdict::Deny, Decider::Policy));
    }

    /// B102: as with configured rules, only a rule without a wildcard is exact.
    #[test]
    fn the_deciding_rule_of_a_turn_must_be_exact() {
        let configured = ApprovalPolicy {
            rules: vec![rule("make", Verdict::Auto), rule("git log", Verdict::Auto)],
            ..ApprovalPolicy::default()
        };
        let turn_rules = vec![rule("git *", Verdict::Auto), rule("ls", Verdict::Auto)];
        let policy = TurnPolicy::new(configured, turn_rules, None);
        let is_exact = |subject| policy.has_exact_rule("exec_shell", subject);
        assert!(is_exact("make") && is_exact("ls"));
        assert!(!is_exact("git log") && !is_exact("git *"));
    }
}
