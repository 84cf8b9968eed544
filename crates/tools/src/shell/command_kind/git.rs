//! Git commands that only read, with the options that select and format their output.

use std::fs;
use std::path::Path;

use super::{is_allowed_option, is_operand};

/// The operands that a command may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Revisions and paths.
    Anything,
    /// Operands create or change something unless [`LIST_OPTION`] is given.
    ListOnly,
    None,
}

struct GitCommand {
    name: &'static str,
    operands: Operands,
    options: &'static [&'static [&'static str]],
}

/// Options for diffs.
const DIFF_OPTIONS: &[&str] = &[
    "-p",
    "-u",
    "--patch",
    "-s",
    "--no-patch",
    "--stat",
    "--stat=",
    "--shortstat",
    "--numstat",
    "--dirstat",
    "--summary",
    "--name-only",
    "--name-status",
    "--check",
    "-w",
    "-b",
    "--ignore-all-space",
    "--ignore-space-change",
    "--ignore-blank-lines",
    "--word-diff",
    "--word-diff=",
    "--minimal",
    "--patience",
    "--histogram",
    "-M",
    "-C",
    "--find-renames",
    "--no-renames",
    "--diff-filter=",
    "-S",
    "-G",
    "-U0",
    "-U1",
    "-U3",
    "-U5",
    "-U10",
    "--unified=",
    "--function-context",
    "-W",
    "--cached",
    "--staged",
    "--merge-base",
    "--exit-code",
    "--quiet",
    "-q",
    "--color=",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "-z",
    "--relative",
    "--abbrev=",
    "--full-index",
    "-R",
];

/// Options that select and format commits.
const LOG_OPTIONS: &[&str] = &[
    "--oneline",
    "--graph",
    "--all",
    "--branches",
    "--tags",
    "--remotes",
    "--decorate",
    "--decorate=",
    "--no-decorate",
    "--format=",
    "--pretty=",
    "--abbrev-commit",
    "-n",
    "--max-count=",
    "--skip=",
    "--since=",
    "--until=",
    "--after=",
    "--before=",
    "--date=",
    "--author=",
    "--committer=",
    "--grep=",
    "-i",
    "-E",
    "-F",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--reverse",
    "--follow",
    "--topo-order",
    "--date-order",
    "--left-right",
    "--cherry-pick",
    "--count",
    "-m",
    "-c",
    "--cc",
    "--full-history",
    "--source",
    "--no-walk",
    "--notes",
];

const STATUS_OPTIONS: &[&str] = &[
    "-s",
    "--short",
    "-b",
    "--branch",
    "--show-stash",
    "--porcelain",
    "--porcelain=",
    "--long",
    "-u",
    "-uno",
    "-unormal",
    "-uall",
    "--untracked-files=",
    "--ignored",
    "--ignored=",
    "-z",
    "--ahead-behind",
    "--no-renames",
    "--column",
];
const REF_OPTIONS: &[&str] = &[
    "-a",
    "-r",
    "-v",
    "-vv",
    "--all",
    "--remotes",
    "--list",
    "--show-current",
    "--sort=",
    "--format=",
    "--no-color",
    "--color=",
    "--merged",
    "--no-merged",
    "--contains",
    "--points-at",
    "--column",
    "--abbrev=",
];
const LS_FILES_OPTIONS: &[&str] = &[
    "-c",
    "-d",
    "-m",
    "-o",
    "-i",
    "-s",
    "-t",
    "-z",
    "--cached",
    "--deleted",
    "--modified",
    "--others",
    "--ignored",
    "--stage",
    "--exclude-standard",
    "--full-name",
    "--error-unmatch",
    "--eol",
];
const LS_TREE_OPTIONS: &[&str] = &[
    "-r",
    "-t",
    "-d",
    "-l",
    "-z",
    "--name-only",
    "--name-status",
    "--long",
    "--full-tree",
];
const BLAME_OPTIONS: &[&str] = &[
    "-L",
    "-w",
    "-M",
    "-C",
    "-e",
    "-s",
    "-l",
    "-t",
    "--show-email",
    "--porcelain",
    "--line-porcelain",
];
const GREP_OPTIONS: &[&str] = &[
    "-n",
    "-i",
    "-w",
    "-l",
    "-L",
    "-c",
    "-h",
    "-H",
    "-E",
    "-F",
    "-G",
    "-P",
    "-v",
    "-e",
    "-A",
    "-B",
    "-C",
    "--count",
    "--name-only",
    "--cached",
    "--untracked",
    "--heading",
    "--break",
];
const REV_PARSE_OPTIONS: &[&str] = &[
    "--short",
    "--short=",
    "--verify",
    "--quiet",
    "-q",
    "--abbrev-ref",
    "--symbolic-full-name",
    "--show-toplevel",
    "--show-prefix",
    "--show-cdup",
    "--git-dir",
    "--absolute-git-dir",
    "--git-common-dir",
    "--is-inside-work-tree",
    "--is-inside-git-dir",
    "--is-bare-repository",
    "--is-shallow-repository",
];
const CAT_FILE_OPTIONS: &[&str] = &["-p", "-t", "-s", "-e"];
const DESCRIBE_OPTIONS: &[&str] = &[
    "--tags",
    "--all",
    "--always",
    "--long",
    "--abbrev=",
    "--dirty",
    "--contains",
    "--exact-match",
];

const fn command(name: &'static str, options: &'static [&'static [&'static str]]) -> GitCommand {
    GitCommand {
        name,
        operands: Operands::Anything,
        options,
    }
}

const COMMANDS: &[GitCommand] = &[
    command("status", &[STATUS_OPTIONS]),
    command("log", &[LOG_OPTIONS, DIFF_OPTIONS]),
    command("show", &[LOG_OPTIONS, DIFF_OPTIONS]),
    command("diff", &[DIFF_OPTIONS]),
    command("shortlog", &[LOG_OPTIONS, &["-s", "-e"]]),
    command("rev-list", &[LOG_OPTIONS]),
    command("rev-parse", &[REV_PARSE_OPTIONS]),
    command(
        "merge-base",
        &[&["--all", "-a", "--is-ancestor", "--octopus"]],
    ),
    command("describe", &[DESCRIBE_OPTIONS]),
    command("blame", &[BLAME_OPTIONS]),
    command("ls-files", &[LS_FILES_OPTIONS]),
    command("ls-tree", &[LS_TREE_OPTIONS]),
    command("cat-file", &[CAT_FILE_OPTIONS]),
    command("grep", &[GREP_OPTIONS]),
    command("check-ignore", &[&["-v", "-q", "-n"]]),
    command("count-objects", &[&["-v", "-H"]]),
    GitCommand {
        name: "branch",
        operands: Operands::ListOnly,
        options: &[REF_OPTIONS],
    },
    GitCommand {
        name: "tag",
        operands: Operands::ListOnly,
        options: &[REF_OPTIONS, &["-n"]],
    },
    GitCommand {
        name: "remote",
        operands: Operands::None,
        options: &[&["-v"]],
    },
    GitCommand {
        name: "reflog",
        operands: Operands::None,
        options: &[LOG_OPTIONS],
    },
];

/// Sections of a repository's settings that make read-only commands start programs. They would fail
/// without those programs, so in such a repository these commands are not classified and need an
/// approval each time.
const PROGRAM_SECTIONS: [&str; 5] = ["[filter", "[diff", "[submodule", "[include", "[gpg"];
const LIST_OPTION: &str = "--list";

/// Returns the pattern for the arguments of `git`.
pub fn pattern(words: &[&str], folder: &Path) -> Option<String> {
    let (prefix, words) = match words.split_first()? {
        (&"--no-pager", rest) => ("--no-pager ", rest),
        _ => ("", words),
    };
    let (name, args) = words.split_first()?;
    let command = COMMANDS.iter().find(|command| command.name == *name)?;
    let own = args.split(|word| *word == "--").next().unwrap_or_default();
    let is_known = |word: &&str| is_operand(word) || is_number(word) || command.has_option(word);
    let is_plain =
        own.iter().all(is_known) && command.accepts_operands(own, args) && !needs_programs(folder);
    is_plain.then(|| format!("git {prefix}{name} *"))
}

impl GitCommand {
    fn has_option(&self, word: &str) -> bool {
        self.options
            .iter()
            .any(|options| is_allowed_option(word, options))
    }

    fn accepts_operands(&self, own: &[&str], args: &[&str]) -> bool {
        let has_operands = own.len() < args.len() || own.iter().any(|word| is_operand(word));
        match self.operands {
            Operands::Anything => true,
            Operands::ListOnly => !has_operands || own.contains(&LIST_OPTION),
            Operands::None => !has_operands,
        }
    }
}

/// Returns true for a number option such as `-10`.
fn is_number(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if the repository needs programs. This is not a safety check: a command that needs
/// one anyway fails.
fn needs_programs(folder: &Path) -> bool {
    let settings = |ancestor: &Path| fs::read_to_string(ancestor.join(".git/config")).ok();
    let found = folder
        .ancestors()
        .find_map(|ancestor| settings(ancestor).map(|text| (ancestor, text)));
    found.is_some_and(|(root, text)| {
        let text = text.to_lowercase();
        let attributes = fs::read_to_string(root.join(".gitattributes")).unwrap_or_default();
        PROGRAM_SECTIONS.iter().any(|part| text.contains(part))
            || attributes.contains("filter=")
            || root.join(".gitmodules").exists()
    })
}
