//! Checks that a test names each rule of the contract. Exceptions are in `xtask/pending-ids.txt`, which may only shrink.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::Result;

use super::SourceFile;
use crate::root;

const PENDING: &str = "xtask/pending-ids.txt";
const CONTRACT: &str = "docs/SPEC.md";

pub fn check(files: &[SourceFile]) -> Result<Vec<String>> {
    let rules = rule_ids(&fs::read_to_string(root().join(CONTRACT))?);
    let named: BTreeSet<String> = files
        .iter()
        .flat_map(|file| extract_ids(test_text(file)))
        .collect();
    let pending = parse_words(&fs::read_to_string(root().join(PENDING)).unwrap_or_default());
    let mut problems = Vec::new();
    for id in &rules {
        match (named.contains(id), pending.contains(id)) {
            (false, false) => problems.push(format!("{id}: no test names this rule")),
            (true, true) => problems.push(format!(
                "{id}: a test names it now; take it out of {PENDING}"
            )),
            _ => {}
        }
    }
    problems.extend(
        pending
            .difference(&rules)
            .map(|id| format!("{PENDING}: {id} is no rule of the contract")),
    );
    for revision in ["HEAD", "HEAD~1"] {
        let (Some(before), Some(contract)) = (
            file_at_revision(revision, PENDING),
            file_at_revision(revision, CONTRACT),
        ) else {
            continue;
        };
        let (before, known) = (parse_words(&before), rule_ids(&contract));
        // A rule that is new in the contract may still lack a test.
        let added = pending.difference(&before).filter(|id| known.contains(*id));
        problems.extend(added.map(|id| format!("{PENDING} may only shrink; {id} was added")));
    }
    Ok(problems)
}

fn rule_ids(contract: &str) -> BTreeSet<String> {
    contract.lines().filter_map(parse_rule_row).collect()
}

/// Returns the test code: test files, scripts, and the test modules at the end of other files.
fn test_text(file: &SourceFile) -> &str {
    if file.is_test() || !file.is_rust() {
        &file.text
    } else {
        &file.text[file.non_test_code().len()..]
    }
}

fn parse_rule_row(row: &str) -> Option<String> {
    let first = row.strip_prefix("| ")?.split(' ').next()?;
    is_id(first).then(|| first.to_owned())
}

fn extract_ids(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| is_id(word))
        .map(str::to_owned)
}

fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    matches!(bytes.len(), 3 | 4)
        && matches!(bytes[0], b'S' | b'B')
        && bytes[1..].iter().all(u8::is_ascii_digit)
}

fn parse_words(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

/// Returns a committed version of a file. A fresh clone has at least its last commit and the one before.
fn file_at_revision(revision: &str, file: &str) -> Option<String> {
    let output = Command::new("git")
        .args(["show", &format!("{revision}:{file}")])
        .current_dir(root())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
