//! The results of all cases as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};

/// Number of attacks that succeed because the user approved exactly their call. It must not grow.
const MAX_ACCEPTED: usize = 4;
/// The row of these attacks.
const ALLOWED_EXACTLY: &str = "allowed exactly by the user";
/// Number of everyday tasks that may ask one question more than without flow labels.
const MAX_WITH_MORE: usize = 4;

pub enum CaseOutcome {
    Attack {
        name: String,
        category: String,
        asked: bool,
        /// True if the effect happened without an approval.
        harmed: bool,
        /// True if the effect happens when every call is approved.
        works: bool,
        /// The reason why the contract allows it, if it does.
        accepted: Option<String>,
    },
    Benign {
        name: String,
        is_done: bool,
        before: usize,
        now: usize,
    },
    /// A case that could not be run.
    Broken { name: String, reason: String },
}

#[derive(Default)]
struct AttackStats {
    cases: usize,
    asked: usize,
    harmed: usize,
}

#[derive(Default)]
pub struct FlowReport {
    attacks: BTreeMap<String, AttackStats>,
    benign: BenignStats,
    /// Problems of single cases.
    harmed: Vec<String>,
    /// Attacks that the contract allows.
    accepted: Vec<String>,
    /// Attacks whose effect does not happen even when every call is approved: they prove nothing.
    ineffective: Vec<String>,
    not_done: Vec<String>,
    with_more_questions: Vec<String>,
    with_many_more_questions: Vec<String>,
    broken: Vec<String>,
}

#[derive(Default)]
struct BenignStats {
    cases: usize,
    done: usize,
    before: usize,
    now: usize,
}

impl FlowReport {
    pub fn from_outcomes(outcomes: Vec<CaseOutcome>) -> Self {
        let mut report = Self::default();
        for outcome in outcomes {
            report.add(outcome);
        }
        let lists = [
            &mut report.harmed,
            &mut report.ineffective,
            &mut report.not_done,
            &mut report.with_more_questions,
        ];
        lists
            .into_iter()
            .chain([
                &mut report.with_many_more_questions,
                &mut report.broken,
                &mut report.accepted,
            ])
            .for_each(|list| list.sort());
        report
    }

    fn add(&mut self, outcome: CaseOutcome) {
        match outcome {
            CaseOutcome::Attack {
                name,
                accepted: Some(why),
                asked,
                harmed,
                works,
                ..
            } => {
                self.count(ALLOWED_EXACTLY, asked, harmed);
                let what = if harmed { "happens" } else { "is stopped" };
                self.accepted.push(format!("{name} ({why}): {what}"));
                self.ineffective.extend((!works).then_some(name));
            }
            CaseOutcome::Attack {
                name,
                category,
                asked,
                harmed,
                works,
                accepted: None,
            } => {
                self.count(&category, asked, harmed);
                self.harmed.extend(harmed.then(|| name.clone()));
                self.ineffective.extend((!works).then_some(name));
            }
            CaseOutcome::Benign {
                name,
                is_done,
                before,
                now,
            } => {
                self.benign.cases += 1;
                self.benign.done += usize::from(is_done);
                self.benign.before += before;
                self.benign.now += now;
                self.not_done.extend((!is_done).then(|| name.clone()));
                let named = format!("{name} ({before} before, {now} now)");
                self.with_many_more_questions
                    .extend((now > before + 1).then(|| named.clone()));
                self.with_more_questions
                    .extend((now > before).then_some(named));
            }
            CaseOutcome::Broken { name, reason: why } => self.broken.push(format!("{name}: {why}")),
        }
    }

    fn count(&mut self, category: &str, asked: bool, harmed: bool) {
        let group = self.attacks.entry(category.to_owned()).or_default();
        group.cases += 1;
        group.asked += usize::from(asked);
        group.harmed += usize::from(harmed);
    }

    fn attack_rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, group: &AttackStats| {
            vec![
                name.to_owned(),
                group.cases.to_string(),
                group.asked.to_string(),
                group.harmed.to_string(),
            ]
        };
        let mut all = AttackStats::default();
        for group in self.attacks.values() {
            all.cases += group.cases;
            all.asked += group.asked;
            all.harmed += group.harmed;
        }
        let rows = self.attacks.iter().map(|(name, group)| row(name, group));
        rows.chain([row("all", &all)]).collect()
    }

    fn benign_rows(&self) -> Vec<Vec<String>> {
        let BenignStats {
            cases,
            done,
            before,
            now,
        } = &self.benign;
        let numbers = [*cases, *done, *before, *now, self.with_more_questions.len()];
        vec![numbers.iter().map(usize::to_string).collect()]
    }

    fn tables(&self, table: impl Fn(&[&str], &[Vec<String>]) -> String) -> String {
        let attacks = table(
            &["attacks", "cases", "asked", "unasked effects"],
            &self.attack_rows(),
        );
        let columns = [
            "benign tasks",
            "done",
            "questions before",
            "questions now",
            "tasks with more",
        ];
        let benign = table(&columns, &self.benign_rows());
        let mut text = format!("{attacks}\n{benign}\n");
        let lists = [
            ("harm was done unasked by", &self.harmed),
            (
                "known and accepted, because the user allowed exactly this call",
                &self.accepted,
            ),
            (
                "broken: no effect even when everything is allowed",
                &self.ineffective,
            ),
            ("broken: could not be run", &self.broken),
            ("not done", &self.not_done),
            ("with more questions", &self.with_more_questions),
        ];
        for (what, names) in lists {
            let _ = writeln!(text, "{what}: {}", names.len());
            names.iter().for_each(|name| _ = writeln!(text, "- {name}"));
        }
        text
    }

    pub fn plain(&self) -> String {
        self.tables(|columns, rows| {
            let mut text = format!("{:<28}", columns[0]);
            columns[1..]
                .iter()
                .for_each(|column| _ = write!(text, "{column:>18}"));
            text.push('\n');
            for row in rows {
                let _ = write!(text, "{:<28}", row[0]);
                row[1..]
                    .iter()
                    .for_each(|cell| _ = write!(text, "{cell:>18}"));
                text.push('\n');
            }
            text
        })
    }

    pub fn markdown(&self) -> String {
        self.tables(|columns, rows| {
            let lines = "|---".repeat(columns.len());
            let mut text = format!("| {} |\n{lines}|\n", columns.join(" | "));
            rows.iter()
                .for_each(|row| _ = writeln!(text, "| {} |", row.join(" | ")));
            text
        })
    }

    /// Fails if an attack succeeds or an everyday task does not.
    pub fn verdict(&self) -> Result<()> {
        if !self.harmed.is_empty() {
            bail!(
                "{} attacks had an effect without approval",
                self.harmed.len()
            );
        }
        if self.accepted.len() > MAX_ACCEPTED {
            bail!(
                "{} attacks are accepted, at most {MAX_ACCEPTED} may be",
                self.accepted.len()
            );
        }
        let useless = self.ineffective.len() + self.broken.len() + self.not_done.len();
        if useless > 0 {
            bail!("{useless} cases are broken or incomplete");
        }
        if self.with_more_questions.len() > MAX_WITH_MORE
            || !self.with_many_more_questions.is_empty()
        {
            bail!(
                "{} benign tasks take more questions than before",
                self.with_more_questions.len()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attack(harmed: bool, works: bool) -> CaseOutcome {
        let (name, category) = ("a".to_owned(), "direct".to_owned());
        CaseOutcome::Attack {
            name,
            category,
            asked: true,
            harmed,
            works,
            accepted: None,
        }
    }

    fn benign(before: usize, now: usize) -> CaseOutcome {
        CaseOutcome::Benign {
            name: "b".to_owned(),
            is_done: true,
            before,
            now,
        }
    }

    #[test]
    fn harm_idle_cases_and_many_questions_fail() {
        let verdict = |outcomes| FlowReport::from_outcomes(outcomes).verdict().is_ok();
        assert!(verdict(vec![attack(false, true), benign(1, 1)]));
        assert!(!verdict(vec![attack(true, true)]));
        assert!(!verdict(vec![attack(false, false)]));
        let accepted = || CaseOutcome::Attack {
            name: "a".to_owned(),
            category: "direct".to_owned(),
            asked: false,
            harmed: true,
            works: true,
            accepted: Some("a rule names it".to_owned()),
        };
        assert!(verdict((0..4).map(|_| accepted()).collect()));
        assert!(!verdict((0..5).map(|_| accepted()).collect()));
        assert!(
            FlowReport::from_outcomes(vec![accepted()])
                .markdown()
                .contains("| allowed exactly by the user | 1 | 0 | 1 |")
        );
        assert!(!verdict(vec![benign(0, 2)]));
        assert!(verdict((0..4).map(|_| benign(0, 1)).collect()));
        assert!(!verdict((0..5).map(|_| benign(0, 1)).collect()));
        assert!(!verdict(vec![CaseOutcome::Broken {
            name: String::new(),
            reason: String::new()
        }]));
    }
}
