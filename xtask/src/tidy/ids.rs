//! Every rule of the contract is named by a test, or stands in `xtask/pending-ids.txt`, which may only shrink.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::Result;

use super::SourceFile;
use crate::root;

const PENDING: &str = "xtask/pending-ids.txt";

pub fn check(files: &[SourceFile]) -> Result<Vec<String>> {
    let contract = fs::read_to_string(root().join("docs/SPEC.md"))?;
    let rules: BTreeSet<String> = contract.lines().filter_map(rule_of_row).collect();
    let named: BTreeSet<String> = files.iter().flat_map(|file| ids_in(test_text(file))).collect();
    let pending = words(&fs::read_to_string(root().join(PENDING)).unwrap_or_default());
    let mut complaints = Vec::new();
    for id in &rules {
        match (named.contains(id), pending.contains(id)) {
            (false, false) => complaints.push(format!("{id}: no test names this rule")),
            (true, true) => complaints.push(format!("{id}: a test names it now; take it out of {PENDING}")),
            _ => {}
        }
    }
    complaints
        .extend(pending.difference(&rules).map(|id| format!("{PENDING}: {id} is no rule of the contract")));
    for before in ["HEAD", "HEAD~1"].into_iter().filter_map(pending_at) {
        complaints.extend(
            pending.difference(&before).map(|id| format!("{PENDING} may only shrink; {id} was added")),
        );
    }
    Ok(complaints)
}

/// Where tests are: test files, scripts, and the test modules at the end of others.
fn test_text(file: &SourceFile) -> &str {
    if file.is_test() || !file.is_rust() { &file.text } else { &file.text[file.product().len()..] }
}

fn rule_of_row(row: &str) -> Option<String> {
    let first = row.strip_prefix("| ")?.split(' ').next()?;
    is_id(first).then(|| first.to_owned())
}

fn ids_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| is_id(word)).map(str::to_owned)
}

fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 3 && matches!(bytes[0], b'S' | b'B') && bytes[1..].iter().all(u8::is_ascii_digit)
}

fn words(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

/// The list as it was committed; a fresh clone has its own last commit to compare with, and the one before.
fn pending_at(revision: &str) -> Option<BTreeSet<String>> {
    let output = Command::new("git")
        .args(["show", &format!("{revision}:{PENDING}")])
        .current_dir(root())
        .output()
        .ok()?;
    output.status.success().then(|| words(&String::from_utf8_lossy(&output.stdout)))
}
