//! The findings of `lango skill check`. They support a review and guarantee nothing.

use std::path::Path;

use super::snapshot::{SkillSnapshot, SnapshotEntry, SnapshotEntryKind, SnapshotPurpose};
use super::{
    SKILL_FILE, Skill, SkillError, SkillOrigin, from_snapshot, real_folder, scan, skill_file,
};

const MAX_BODY_LEN: usize = 500;
/// Maximum number of bytes scanned per file, and in total.
const MAX_SCANNED_BYTES: usize = 512 * 1024;
const MAX_SCANNED_TOTAL: usize = 4 * 1024 * 1024;
/// Limits the findings per file, so that one file cannot hide those of the others.
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
    /// The skill cannot be used.
    Error,
    /// The skill can be used, but should be reviewed.
    Warning,
}

/// Returns all findings about the skill in `folder`, errors first. Blocks while it reads.
pub fn check(folder: &Path) -> Vec<Finding> {
    let inspected = real_folder(folder)
        .and_then(|real| Ok((SkillSnapshot::take(&real, SnapshotPurpose::Inspect)?, real)));
    let (snapshot, real) = match inspected {
        Ok(inspected) => inspected,
        Err(skill_error) => return vec![error(&skill_error)],
    };
    let skill = from_snapshot(folder, real, SkillOrigin::User, &snapshot);
    let mut findings = Vec::new();
    if let Err(skill_error) = &skill {
        findings.push(error(skill_error));
    }
    findings.extend(skill.ok().and_then(|skill| name_finding(&skill)));
    findings.extend(skill_file_findings(&snapshot));
    findings.extend(
        snapshot
            .scripts()
            .filter_map(|(_, entry)| script_finding(entry)),
    );
    findings.extend(scan_snapshot(&snapshot));
    findings
}

/// Scans a snapshot that keeps its contents. Files that are too long to scan are findings too.
pub(super) fn scan_snapshot(snapshot: &SkillSnapshot) -> Vec<Finding> {
    let mut remaining = MAX_SCANNED_TOTAL;
    let mut findings = Vec::new();
    for entry in &snapshot.files {
        let Some(text) = scannable_text(entry) else {
            continue;
        };
        if text.len() > MAX_SCANNED_BYTES.min(remaining) {
            findings.push(warning(&entry.path, 1, "too long to be scanned"));
            continue;
        }
        remaining -= text.len();
        let lines = scan::scan(text).into_iter().take(MAX_FINDINGS_PER_FILE);
        findings.extend(lines.map(|found| warning(&entry.path, found.line, found.message)));
    }
    findings
}

/// Returns the text to scan. Skips assets, because images and fonts contain encoded data.
fn scannable_text(entry: &SnapshotEntry) -> Option<&str> {
    let is_scannable = entry.kind != SnapshotEntryKind::Link && !entry.path.starts_with("assets/");
    let content = entry
        .content
        .as_deref()
        .filter(|content| is_scannable && !content.contains(&0))?;
    std::str::from_utf8(content).ok()
}

fn name_finding(skill: &Skill) -> Option<Finding> {
    let problem = super::catalog::tool_name_problem(&skill.name)?;
    Some(warning(SKILL_FILE, 1, problem))
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
    let message = "it is not executable and does not start with `#!`, so it may not run";
    let has_shebang = entry
        .content
        .as_deref()
        .is_some_and(|content| content.starts_with(b"#!"));
    (entry.kind != SnapshotEntryKind::Executable && !has_shebang)
        .then(|| warning(&entry.path, 1, message))
}

fn error(error: &SkillError) -> Finding {
    let location = format!("{}:{}", error.file.display(), error.line);
    Finding {
        level: FindingLevel::Error,
        location: lango_text::sanitize::strip_control_chars(&location),
        message: error.message.clone(),
    }
}

fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
    Finding {
        level: FindingLevel::Warning,
        location: format!("{path}:{line}"),
        message: message.into(),
    }
}
