//! What `lango skill check` says about a folder. Findings are help for a reader, never a guarantee.

use std::path::Path;

use super::snapshot::{SkillSnapshot, SnapshotEntry, SnapshotEntryKind, SnapshotPurpose};
use super::{
    SKILL_FILE, Skill, SkillError, SkillOrigin, from_snapshot, real_folder, scan, skill_file,
};

const MAX_BODY_LEN: usize = 500;
/// How much text is looked at in one file, and in all.
const MAX_SCANNED_BYTES: usize = 512 * 1024;
const MAX_SCANNED_TOTAL: usize = 4 * 1024 * 1024;
/// So that one file cannot bury what is found in the rest.
const MAX_FINDINGS_PER_FILE: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: FindingLevel,
    /// `file:line`.
    pub location: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    /// It cannot be used like this.
    Error,
    /// Worth a look.
    Warning,
}

/// All that can be said about the skill in `folder`, errors first. Blocks while it reads.
pub fn check(folder: &Path) -> Vec<Finding> {
    let looked = real_folder(folder)
        .and_then(|real| Ok((SkillSnapshot::take(&real, SnapshotPurpose::Inspect)?, real)));
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
    findings.extend(skill_file_findings(&snapshot));
    findings.extend(
        snapshot
            .scripts()
            .filter_map(|(_, entry)| script_finding(entry)),
    );
    findings.extend(scan_snapshot(&snapshot));
    findings
}

/// The signs in a snapshot that kept its contents. What is too long to look at is a finding too.
pub(super) fn scan_snapshot(snapshot: &SkillSnapshot) -> Vec<Finding> {
    let mut room = MAX_SCANNED_TOTAL;
    let mut findings = Vec::new();
    for entry in &snapshot.files {
        let Some(text) = scannable_text(entry) else {
            continue;
        };
        if text.len() > MAX_SCANNED_BYTES.min(room) {
            findings.push(warning(&entry.path, 1, "too long to be looked through"));
            continue;
        }
        room -= text.len();
        let signs = scan::scan(text).into_iter().take(MAX_FINDINGS_PER_FILE);
        findings.extend(signs.map(|sign| warning(&entry.path, sign.line, sign.message)));
    }
    findings
}

/// Assets are material, not words: drawings and fonts are full of encoded data.
fn scannable_text(entry: &SnapshotEntry) -> Option<&str> {
    let is_words = entry.kind != SnapshotEntryKind::Link && !entry.path.starts_with("assets/");
    let content = entry
        .content
        .as_deref()
        .filter(|content| is_words && !content.contains(&0))?;
    std::str::from_utf8(content).ok()
}

fn name_finding(skill: &Skill) -> Option<Finding> {
    let why = super::catalog::tool_name_problem(&skill.name)?;
    Some(warning(SKILL_FILE, 1, why))
}

fn skill_file_findings(snapshot: &SkillSnapshot) -> Vec<Finding> {
    let text = snapshot
        .content(SKILL_FILE)
        .and_then(|content| std::str::from_utf8(content).ok());
    let Some(page) = text.and_then(|text| skill_file::parse(text).ok()) else {
        return Vec::new();
    };
    let unknown =
        |(key, line): &(String, usize)| warning(SKILL_FILE, *line, format!("unknown key `{key}`"));
    let mut findings: Vec<Finding> = page.unknown_keys.iter().map(unknown).collect();
    match page.body.lines().count() {
        0 => findings.push(warning(
            SKILL_FILE,
            page.body_line,
            "there are no instructions",
        )),
        lines if lines > MAX_BODY_LEN => {
            let message = format!(
                "{lines} lines of instructions; over {MAX_BODY_LEN}, move parts to references/"
            );
            findings.push(warning(SKILL_FILE, page.body_line, message));
        }
        _ => {}
    }
    findings
}

fn script_finding(entry: &SnapshotEntry) -> Option<Finding> {
    let message = "it is not executable and does not begin with `#!`, so it may not run";
    let says_how = entry
        .content
        .as_deref()
        .is_some_and(|content| content.starts_with(b"#!"));
    (entry.kind != SnapshotEntryKind::Executable && !says_how)
        .then(|| warning(&entry.path, 1, message))
}

fn error(mistake: &SkillError) -> Finding {
    let place = format!("{}:{}", mistake.file.display(), mistake.line);
    Finding {
        level: FindingLevel::Error,
        location: lango_domain::text::strip_control_chars(&place),
        message: mistake.message.clone(),
    }
}

fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
    Finding {
        level: FindingLevel::Warning,
        location: format!("{path}:{line}"),
        message: message.into(),
    }
}
