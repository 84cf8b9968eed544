//! What `lango skill check` says about a folder. Findings are help for a reader, never a guarantee.

use std::path::Path;

use super::snapshot::{SnapshotEntry, SnapshotEntryKind, SnapshotPurpose, SkillSnapshot};
use super::{SkillOrigin, SKILL_FILE, Skill, SkillError, skill_file, real_folder, scan, from_snapshot};

const LONGEST_BODY: usize = 500;
/// How much text is looked at in one file, and in all.
const MOST_SCANNED_BYTES: usize = 512 * 1024;
const MOST_SCANNED_IN_ALL: usize = 4 * 1024 * 1024;
/// So that one file cannot bury what is found in the rest.
const MOST_SIGNS_PER_FILE: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    /// `file:line`.
    pub place: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It cannot be used like this.
    Error,
    /// Worth a look.
    Warning,
}

/// All that can be said about the skill in `folder`, errors first. Blocks while it reads.
pub fn check(folder: &Path) -> Vec<Finding> {
    let looked = real_folder(folder).and_then(|real| Ok((SkillSnapshot::take(&real, SnapshotPurpose::Look)?, real)));
    let (snapshot, real) = match looked {
        Ok(looked) => looked,
        Err(mistake) => return vec![error(&mistake)],
    };
    let understood = from_snapshot(folder, real, SkillOrigin::User, &snapshot);
    let mut findings = Vec::new();
    if let Err(mistake) = &understood {
        findings.push(error(mistake));
    }
    findings.extend(understood.ok().and_then(|skill| name_finding(&skill)));
    findings.extend(page_findings(&snapshot));
    findings.extend(snapshot.scripts().filter_map(|(_, entry)| script_finding(entry)));
    findings.extend(suspicious(&snapshot));
    findings
}

/// The signs in a snapshot that kept its contents. What is too long to look at is a finding too.
pub(super) fn suspicious(snapshot: &SkillSnapshot) -> Vec<Finding> {
    let mut room = MOST_SCANNED_IN_ALL;
    let mut findings = Vec::new();
    for entry in &snapshot.files {
        let Some(text) = words_of(entry) else { continue };
        if text.len() > MOST_SCANNED_BYTES.min(room) {
            findings.push(warning(&entry.path, 1, "too long to be looked through"));
            continue;
        }
        room -= text.len();
        let signs = scan::scan(text).into_iter().take(MOST_SIGNS_PER_FILE);
        findings.extend(signs.map(|sign| warning(&entry.path, sign.line, sign.message)));
    }
    findings
}

/// Assets are material, not words: drawings and fonts are full of encoded data.
fn words_of(entry: &SnapshotEntry) -> Option<&str> {
    let is_words = entry.kind != SnapshotEntryKind::Link && !entry.path.starts_with("assets/");
    let content = entry.content.as_deref().filter(|content| is_words && !content.contains(&0))?;
    std::str::from_utf8(content).ok()
}

fn name_finding(skill: &Skill) -> Option<Finding> {
    let why = super::catalog::tool_name_problem(&skill.name)?;
    Some(warning(SKILL_FILE, 1, why))
}

fn page_findings(snapshot: &SkillSnapshot) -> Vec<Finding> {
    let text = snapshot.content(SKILL_FILE).and_then(|content| std::str::from_utf8(content).ok());
    let Some(page) = text.and_then(|text| skill_file::parse(text).ok()) else { return Vec::new() };
    let unknown = |(key, line): &(String, usize)| warning(SKILL_FILE, *line, format!("unknown key `{key}`"));
    let mut findings: Vec<Finding> = page.unknown.iter().map(unknown).collect();
    match page.body.lines().count() {
        0 => findings.push(warning(SKILL_FILE, page.body_line, "there are no instructions")),
        lines if lines > LONGEST_BODY => {
            let message =
                format!("{lines} lines of instructions; over {LONGEST_BODY}, move parts to references/");
            findings.push(warning(SKILL_FILE, page.body_line, message));
        }
        _ => {}
    }
    findings
}

fn script_finding(entry: &SnapshotEntry) -> Option<Finding> {
    let message = "it is not executable and does not begin with `#!`, so it may not run";
    let says_how = entry.content.as_deref().is_some_and(|content| content.starts_with(b"#!"));
    (entry.kind != SnapshotEntryKind::Executable && !says_how).then(|| warning(&entry.path, 1, message))
}

fn error(mistake: &SkillError) -> Finding {
    let place = format!("{}:{}", mistake.file.display(), mistake.line);
    Finding {
        level: Level::Error,
        place: lango_domain::text::strip_control_chars(&place),
        message: mistake.message.clone(),
    }
}

fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
    Finding { level: Level::Warning, place: format!("{path}:{line}"), message: message.into() }
}
