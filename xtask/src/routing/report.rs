//! Evaluation report: accuracy, precision and recall, confusion matrix, worst misses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lango_models::offline::weights::LABELS;

use super::data::Sample;

/// The label for requests that no agent handles.
pub const NO_AGENT: usize = LABELS.len();
/// Maximum number of misses shown, most confident first.
const MAX_MISSES: usize = 25;

/// One evaluated request.
pub struct Prediction<'a> {
    pub sample: &'a Sample,
    pub predicted: usize,
    pub confidence: f32,
}

impl Prediction<'_> {
    fn is_right(&self) -> bool {
        self.predicted == self.sample.label
    }
}

pub fn accuracy(judged: &[Prediction<'_>]) -> f64 {
    let right = judged.iter().filter(|one| one.is_right()).count();
    right as f64 / judged.len().max(1) as f64
}

pub fn format_report(judged: &[Prediction<'_>], all_misses: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "accuracy {:.1} % of {} requests",
        100.0 * accuracy(judged),
        judged.len()
    );
    for (name, of) in [
        ("language", by_language as fn(&Sample) -> &str),
        ("file", by_source),
    ] {
        let mut groups: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for one in judged {
            groups
                .entry(of(one.sample))
                .or_default()
                .push(one.is_right());
        }
        let shares = groups.iter().map(|(group, right)| {
            let good = right.iter().filter(|right| **right).count();
            format!(
                "{group} {:.1} % of {}",
                100.0 * good as f64 / right.len() as f64,
                right.len()
            )
        });
        let _ = writeln!(text, "by {name}: {}", shares.collect::<Vec<_>>().join(", "));
    }
    text.push_str(&format_confusion(judged));
    text.push_str(&format_misses(
        judged,
        if all_misses { usize::MAX } else { MAX_MISSES },
    ));
    text
}

fn by_language(sample: &Sample) -> &str {
    &sample.language
}

fn by_source(sample: &Sample) -> &str {
    &sample.source
}

/// Rows are expected labels, columns are predicted ones.
fn format_confusion(judged: &[Prediction<'_>]) -> String {
    let mut counts = [[0_usize; LABELS.len() + 1]; LABELS.len()];
    for one in judged {
        counts[one.sample.label][one.predicted] += 1;
    }
    let mut text = format!("\n{:12}", "");
    for label in LABELS.iter().chain(["nobody"].iter()) {
        let _ = write!(text, "{:>10}", &label[..label.len().min(9)]);
    }
    let _ = writeln!(text, "{:>11}{:>8}", "precision", "recall");
    for (label, row) in counts.iter().enumerate() {
        let _ = write!(text, "{:12}", LABELS[label]);
        row.iter().for_each(|count| _ = write!(text, "{count:>10}"));
        let said: usize = counts.iter().map(|row| row[label]).sum();
        let share = |of: usize| 100.0 * row[label] as f64 / of.max(1) as f64;
        let _ = writeln!(
            text,
            "{:>10.1}%{:>7.1}%",
            share(said),
            share(row.iter().sum())
        );
    }
    text
}

fn format_misses(judged: &[Prediction<'_>], most: usize) -> String {
    let mut wrong: Vec<&Prediction<'_>> = judged.iter().filter(|one| !one.is_right()).collect();
    wrong.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let mut text = String::from("\nworst misses (right, said, how sure, request)\n");
    for one in wrong.into_iter().take(most) {
        let said = LABELS.get(one.predicted).unwrap_or(&"nobody");
        let short: String = one.sample.text.chars().take(100).collect();
        let _ = writeln!(
            text,
            "{:11} {said:11} {:.2}  {short}",
            LABELS[one.sample.label], one.confidence
        );
    }
    text
}
