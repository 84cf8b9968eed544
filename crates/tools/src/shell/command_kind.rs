//! Classifies commands, so that an approval for one can cover others of the same kind. An approval
//! covers a command only if the command has a kind (`lango_engine::approval_policy`); all other
//! commands need an approval each time.
//!
//! There are two kinds. *Read-only* commands cannot start other programs (`sandbox::seccomp`), so
//! neither an option nor a setting of a hostile repository makes them run anything. *Build*
//! commands run the project's code in any case; their options are limited to those that select what
//! is built.

mod git;
mod tables;
mod tokenize;

use std::path::Path;

use tables::{BUILD_COMMANDS, READERS};
use tokenize::tokenize;

/// The kind of a command, with the pattern for similar commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    ReadOnly(String),
    Build(String),
}

impl CommandKind {
    pub fn into_pattern(self) -> String {
        match self {
            Self::ReadOnly(pattern) | Self::Build(pattern) => pattern,
        }
    }
}

/// Returns the kind of a command line run in `folder`, or `None` if its effects are not clear.
pub fn classify(line: &str, folder: &Path) -> Option<CommandKind> {
    let words = tokenize(line)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["git", rest @ ..] => git::pattern(rest, folder).map(CommandKind::ReadOnly),
        [program, rest @ ..] => {
            classify_reader(program, rest).or_else(|| classify_build(program, rest))
        }
        [] => None,
    }
}

fn classify_reader(program: &str, args: &[&str]) -> Option<CommandKind> {
    let (_, rejected) = READERS.iter().find(|(reader, _)| *reader == program)?;
    let is_plain = args
        .iter()
        .all(|word| !rejected.iter().any(|option| may_match_option(word, option)));
    is_plain.then(|| CommandKind::ReadOnly(format!("{program} *")))
}

/// Returns true if a word may be parsed as the option. Long options can be abbreviated, short ones
/// can be combined.
fn may_match_option(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    match (option.strip_prefix("--"), option.strip_prefix('-')) {
        (Some(_), _) => name.starts_with("--") && name.len() > 2 && option.starts_with(name),
        (None, Some(letter)) => {
            word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
        }
        (None, None) => word == option,
    }
}

fn classify_build(program: &str, args: &[&str]) -> Option<CommandKind> {
    let (command, rest) = args.split_first()?;
    let builder = BUILD_COMMANDS
        .iter()
        .find(|builder| builder.program == program && builder.command == *command)?;
    let mut parts = rest.splitn(2, |word| *word == "--");
    let (own, forwarded) = (parts.next().unwrap_or_default(), parts.next());
    let is_plain = own
        .iter()
        .all(|word| is_operand(word) || is_allowed_option(word, builder.options))
        && (forwarded.is_none() || builder.forwards_args);
    is_plain.then(|| CommandKind::Build(format!("{program} {command} *")))
}

fn is_operand(word: &str) -> bool {
    !word.starts_with(['-', '+'])
}

/// Returns true if an option is in the list. An entry that ends with `=` takes a value.
fn is_allowed_option(word: &str, options: &[&str]) -> bool {
    options.iter().any(|option| match option.strip_suffix('=') {
        Some(name) => {
            word == name
                || word
                    .strip_prefix(name)
                    .is_some_and(|value| value.starts_with('='))
        }
        None => word == *option,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCLASSIFIED: &[&str] = &[
        "git -c alias.x=!id x",
        "git -c core.pager=id log",
        "git --config-env=core.pager=X log",
        "git --exec-path=. status",
        "git -C other status",
        "git -p log",
        "git --paginate log",
        "git diff --output=x",
        "git diff --outp=x",
        "git diff \"--output=x\"",
        "git diff --out'put'=x",
        "git log -o x",
        "git log --ext-diff",
        "git show --textconv",
        "git grep -Oid x",
        "git grep --open-files-in-pager=id x",
        "git branch new",
        "git branch -D old",
        "git tag new",
        "git remote add x y",
        "git reflog delete x",
        "git diff *",
        "git fetch --upload-pack=id",
        "git push --receive-pack=id",
        "git clone x",
        "git submodule foreach id",
        "git bisect run id",
        "git rebase --exec id",
        "git difftool",
        "git mergetool",
        "git filter-branch --tree-filter id",
        "git add .",
        "git commit -m x",
        "git lango",
        "rg --pre ./x y",
        "rg --pre=./x y",
        "rg --hostname-bin ./x y",
        "rg -- *",
        "find . -exec id +",
        "find . -name x",
        "tar -x --to-command=id -f x",
        "env id",
        "xargs id",
        "sed 1e x",
        "awk 1 x",
        "less x",
        "man x",
        "sort --compress-program=id x",
        "uniq a b",
        "file -C -m x",
        "file --comp x",
        "date -s now",
        "date -us now",
        "date --se=now",
        "tree -o x",
        "tree -ao x",
        "mkdir .git",
        "cargo test --config x",
        "cargo build --target-dir x",
        "cargo build --manifest-path x",
        "cargo +x build",
        "cargo build +x",
        "cargo fmt -- --config-path x",
        "cargo install x",
        "npm test --script-shell=./x",
        "go build -o x",
        "go build -toolexec ./x",
        "go test -exec ./x",
        ". x",
        "python3 -c x",
        "sudo ls",
        "$(x) y",
        "./run me",
        "FOO=1 make",
        "ls; rm x",
        "ls \\; rm",
        "ls\nrm",
        "ls\u{200b} x",
        "ls \u{202e}x",
        "ls 'x",
        "for i in 1; do x; done",
        "\"ls x\"",
        "",
    ];

    fn pattern(line: &str) -> Option<String> {
        classify(line, Path::new("/nowhere")).map(CommandKind::into_pattern)
    }

    /// B102
    #[test]
    fn returns_patterns_for_known_commands() {
        for (line, expected) in [
            ("git status -s", "git status *"),
            (
                "git --no-pager log --oneline -n 5 -- src",
                "git --no-pager log *",
            ),
            (
                "git log --format=\"%h %s\" --since '2 days ago' -10",
                "git log *",
            ),
            ("git diff --stat HEAD~1 main -- a.rs", "git diff *"),
            ("git branch --list 'feature/x'", "git branch *"),
            ("ls", "ls *"),
            ("rg -n 'fn main' src/*.rs", "rg *"),
            (
                "cargo test -p lango-tools --test main name -- --nocapture",
                "cargo test *",
            ),
        ] {
            assert_eq!(pattern(line).as_deref(), Some(expected), "{line}");
        }
    }

    /// B102: rejects every option that runs or writes something.
    #[test]
    fn rejects_commands_that_can_run_or_write() {
        for line in UNCLASSIFIED {
            assert_eq!(pattern(line), None, "{line}");
        }
    }
}
