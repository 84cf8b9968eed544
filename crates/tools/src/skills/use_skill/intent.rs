//! The intent of a skill call, for the approval policy.

use lango_domain::{Intent, Safety, ToolError};
use lango_text::sanitize;

use super::{SkillRequest, file_list, verified_snapshot};
use crate::skills::script_command::ScriptCommand;
use crate::skills::snapshot::{SkillSnapshot, SnapshotPurpose};
use crate::skills::{Skill, TrustFile, check, quote};

const MAX_BODY_LINES: usize = 200;
const MAX_SCRIPT_LINES: usize = 100;
const MAX_STDIN_LINES: usize = 40;
const MAX_FINDINGS: usize = 30;
/// Enough characters of a fingerprint to make a collision infeasible.
const FINGERPRINT_LENGTH: usize = 40;

/// Returns the intent of a call. Blocks while it reads the skill's files.
pub(super) fn intent(
    skill: &Skill,
    trusted: &TrustFile,
    request: &SkillRequest,
) -> Result<Intent, ToolError> {
    let is_trusted = trusted.is_trusted(skill);
    let path = request.path();
    let contents_of: Vec<&str> = path.as_deref().into_iter().collect();
    let purpose = if is_trusted {
        SnapshotPurpose::Use {
            contents_of: &contents_of,
        }
    } else {
        SnapshotPurpose::Inspect
    };
    let snapshot = verified_snapshot(skill, purpose)?;
    let command = match request {
        SkillRequest::Script { script, args, .. } => {
            Some(ScriptCommand::find(skill, &snapshot, script, args)?)
        }
        SkillRequest::Instructions | SkillRequest::File(_) => None,
    };
    let introduction = if is_trusted {
        String::new()
    } else {
        introduction(skill, &snapshot)
    };
    let action = match (&command, request) {
        (Some(command), SkillRequest::Script { stdin, .. }) => {
            describe_run(command, stdin, &snapshot)
        }
        (_, SkillRequest::File(_)) => format!(
            "Reads {} of the skill {}.\n",
            display_path(path.as_deref()),
            skill.name
        ),
        _ => format!("Reads the instructions of the skill {}.\n", skill.name),
    };
    let is_safe = is_trusted && command.is_none();
    let content = subject(skill);
    Ok(Intent {
        level: if is_safe {
            Safety::Safe
        } else {
            Safety::Dangerous
        },
        shows: format!("{introduction}{action}"),
        subject: command.as_ref().map_or(content.clone(), |command| {
            format!("{content} {}", command.subject())
        }),
        // An approval of an untrusted skill is valid for one call only.
        pattern: command
            .filter(|_| is_trusted)
            .and_then(|command| Some(format!("{content} {}", command.pattern()?))),
    })
}

/// Returns the subject for approval rules. Invariant: a rule that allows calls of a skill must not
/// outlive the approved content, so the fingerprint is part of the subject.
fn subject(skill: &Skill) -> String {
    let length = FINGERPRINT_LENGTH.min(skill.fingerprint.len());
    format!("{}@{}", skill.name, &skill.fingerprint[..length])
}

fn display_path(path: Option<&str>) -> String {
    quote::escape_hidden(&sanitize::one_line(path.unwrap_or_default()))
}

/// Describes an untrusted skill for the approval question: its origin, findings, files and
/// instructions.
fn introduction(skill: &Skill, snapshot: &SkillSnapshot) -> String {
    let folder = sanitize::one_line(&skill.folder.to_string_lossy());
    let tools = match skill.allowed_tools.as_slice() {
        [] => "nothing in particular".to_owned(),
        tools => quote::escape_hidden(&tools.join(", ")),
    };
    format!(
        "The skill {} comes from {folder} and was not used before.\n\
         It says about itself: {}\nIt says it needs: {tools}\n{}\nIts files:\n{}\nIts instructions:\n{}\n",
        skill.name,
        quote::escape_hidden(&skill.description),
        format_findings(snapshot),
        file_list(snapshot),
        quote::block(&skill.body, MAX_BODY_LINES),
    )
}

fn format_findings(snapshot: &SkillSnapshot) -> String {
    let found = check::scan_snapshot(snapshot);
    if found.is_empty() {
        return String::new();
    }
    let lines = found.iter().take(MAX_FINDINGS);
    let list: String = lines
        .map(|finding| format!("- {} {}\n", finding.location, finding.message))
        .collect();
    format!("Look closely at:\n{list}")
}

fn describe_run(command: &ScriptCommand, stdin: &str, snapshot: &SkillSnapshot) -> String {
    let script = snapshot.content(&command.file).unwrap_or_default();
    let input = if stdin.is_empty() {
        String::new()
    } else {
        format!("Its input:\n{}", quote::block(stdin, MAX_STDIN_LINES))
    };
    format!(
        "Runs: {}\n{input}The script {}:\n{}",
        command.display_line(),
        command.file,
        quote::content_block(script, MAX_SCRIPT_LINES),
    )
}
