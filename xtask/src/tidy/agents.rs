//! The definitions of the built-in agents: whole, and none naming another.

use lango_team::{Roster, confusable_words, contains_word};

pub fn check() -> Vec<String> {
    let roster = Roster::built_in();
    let mut complaints: Vec<String> =
        roster.mistakes.iter().map(|mistake| format!("agents/{mistake}")).collect();
    for spec in &roster.specs {
        let file = format!("agents/{}.md", spec.name);
        for other in roster.specs.iter().filter(|other| other.name != spec.name) {
            if contains_word(&spec.instruction, other.name.as_str()) {
                complaints.push(format!("{file}: names the agent {}", other.name));
            }
        }
        let facts = format!("{} {} {}", spec.description, spec.keywords.join(", "), spec.cannot.join(", "));
        complaints.extend(
            confusable_words(&facts).iter().map(|word| format!("{file}: `{word}` may be taken for an agent")),
        );
    }
    complaints
}
