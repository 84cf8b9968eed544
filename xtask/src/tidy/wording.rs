//! Reports comments and pages that are not in plain English, with a budget that only shrinks.

use std::fs;

use anyhow::Result;

use super::{SourceFile, listed_files};
use crate::root;

/// Lines with odd wording that are still allowed. Lower it when a line gets better.
const BUDGET: usize = 0;

/// Words that a summary line must not begin with: "Whether it runs" is a clause, not a summary.
const CLAUSE_WORDS: [&str; 4] = ["What", "Whoever", "Whether", "How"];

/// Words that have a plainer equivalent.
const ODD_WORDS: [&str; 8] = [
    "whoever",
    "nobody",
    "somebody",
    "so many",
    "anew",
    "at hand",
    "elsewhere",
    "beside",
];

/// The contract quotes its sources.
const EXEMPT_PAGES: [&str; 1] = ["docs/SPEC.md"];

pub fn check(files: &[SourceFile]) -> Result<Vec<String>> {
    let mut odd = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let found = odd_comments(&file.text);
        odd.extend(
            found
                .into_iter()
                .map(|(line, problem)| format!("{}:{line}: {problem}", file.path.display())),
        );
    }
    for (path, text) in pages()? {
        let found = text.lines().enumerate();
        odd.extend(
            found.filter_map(|(at, line)| Some(format!("{path}:{}: {}", at + 1, odd_word(line)?))),
        );
    }
    println!(
        "tidy: {} comments and lines of pages with odd wording (budget {BUDGET})",
        odd.len()
    );
    Ok(over_budget(odd, BUDGET))
}

fn over_budget(odd: Vec<String>, budget: usize) -> Vec<String> {
    if odd.len() < budget {
        return vec![format!(
            "odd wording: lower BUDGET in xtask/src/tidy/wording.rs to {}",
            odd.len()
        )];
    }
    if odd.len() > budget { odd } else { Vec::new() }
}

/// Returns the odd comments of a Rust file with their line numbers.
fn odd_comments(text: &str) -> Vec<(usize, String)> {
    let mut odd = Vec::new();
    let mut in_doc = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//") else {
            in_doc = false;
            continue;
        };
        let doc = comment.strip_prefix(['/', '!']);
        if let Some(problem) = doc
            .filter(|_| !in_doc)
            .and_then(clause)
            .or_else(|| odd_word(comment))
        {
            odd.push((at + 1, problem));
        }
        in_doc = doc.is_some();
    }
    odd
}

fn clause(summary: &str) -> Option<String> {
    let first = summary.split_whitespace().next()?;
    let is_question = summary.contains('?');
    (CLAUSE_WORDS.contains(&first) && !is_question)
        .then(|| format!("the summary begins with the clause \"{first} …\""))
}

fn odd_word(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let found = ODD_WORDS.into_iter().find(|odd| {
        lower.match_indices(odd).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + odd.len()..].chars().next();
            let is_part = |c: Option<char>| {
                c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '"' | '`'))
            };
            !is_part(before) && !is_part(after)
        })
    })?;
    Some(format!("\"{found}\" has a plainer equivalent"))
}

/// Reads the pages for people. Prompts and golden files of models are not among them.
fn pages() -> Result<Vec<(String, String)>> {
    let folders = [
        ":!agents",
        ":!prompts",
        ":!examples",
        ":!evals",
        ":!peers",
        ":!crates",
    ];
    let names = listed_files(&[&["*.md"], &folders[..]].concat())?;
    let names = names
        .into_iter()
        .filter(|name| !EXEMPT_PAGES.contains(&name.as_str()));
    names
        .map(|name| Ok((name.clone(), fs::read_to_string(root().join(name))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        odd_comments(text)
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn reports_clauses_at_the_start_of_a_doc_comment_only() {
        assert_eq!(lines("/// What a turn did.\nfn a() {}\n"), [1]);
        assert_eq!(lines("//! Whether it runs.\n"), [1]);
        assert_eq!(
            lines("/// Runs it.\n/// How it runs: fast.\nfn a() {}\n"),
            [0_usize; 0]
        );
        assert_eq!(lines("/// What is the answer?\nfn a() {}\n"), [0_usize; 0]);
        assert_eq!(lines("let a = \"What a turn did.\";\n"), [0_usize; 0]);
    }

    #[test]
    fn reports_odd_words_as_words() {
        assert_eq!(lines("// Nobody is asked.\n"), [1]);
        assert_eq!(
            lines("// The value `nobody_there`, besides.\n"),
            [0_usize; 0]
        );
    }

    #[test]
    fn the_budget_only_shrinks() {
        let odd = || vec!["a".to_owned(), "b".to_owned()];
        assert!(over_budget(odd(), 2).is_empty());
        assert_eq!(over_budget(odd(), 1), odd());
        assert_eq!(over_budget(odd(), 3).len(), 1);
    }
}
