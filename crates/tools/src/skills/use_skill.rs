//! The tool of one skill: reads its instructions and files, runs its scripts.

mod intent;

use std::path::PathBuf;
use std::sync::Arc;

use lango_domain::{Safety, Tool, ToolContext, ToolError};
use lango_text::{sanitize, suggest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::script_command::{self, ScriptCommand};
use super::snapshot::{SkillSnapshot, SnapshotEntryKind, SnapshotPurpose};
use super::tools::{TOOL_PREFIX, run_blocking};
use super::{Skill, TrustFile, quote};
use crate::shell::{CommandRequest, Shell};

const MAX_DESCRIPTION_LEN: usize = 300;
/// Maximum size of one result.
const MAX_BYTES: usize = 40_000;
const MAX_LISTED_FILES: usize = 100;
/// Replaces the description of a project's skill until the user has confirmed it.
pub(super) const UNCONFIRMED_DESCRIPTION: &str = "a skill of this folder that is not confirmed yet";
const SKILL_CHANGED: &str = "the skill changed on disk; it can be used again from the next turn on";

/// The context shared by all skill tools.
#[derive(Clone)]
pub(super) struct SkillRunContext {
    pub shell: Shell,
    pub workspace: PathBuf,
    pub trusted: TrustFile,
}

pub(super) fn tool(skill: Arc<Skill>, run_context: SkillRunContext) -> Tool {
    let name = &skill.name;
    let summary = if run_context.trusted.is_description_visible(&skill) {
        format!(
            ", in its own words: \"{}\"",
            quote::truncate_line(&skill.description, MAX_DESCRIPTION_LEN)
        )
    } else {
        format!(": {UNCONFIRMED_DESCRIPTION}.")
    };
    let description = format!(
        "The skill {name}{summary} Call it without arguments first, to read its instructions."
    );
    let phrases = [
        format!("use [the] [skill] {name}"),
        format!("(use|apply|run) [the] {name} skill"),
        format!("run [the] [script] {{script:word}} of [the] [skill] {name}"),
    ];
    let trusted = run_context.trusted.clone();
    let intent_skill = Arc::clone(&skill);
    let called_skill = Arc::clone(&skill);
    Tool::new(
        format!("{TOOL_PREFIX}{name}"),
        description,
        Safety::Dangerous,
        move |context, args: UseSkillArgs| {
            use_skill(
                Arc::clone(&called_skill),
                run_context.clone(),
                context,
                args,
            )
        },
    )
    .with_intent(move |_, args: UseSkillArgs| {
        let (skill, trusted) = (Arc::clone(&intent_skill), trusted.clone());
        run_blocking(move || intent::intent(&skill, &trusted, &args.request()?))
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([&phrases[0], &phrases[1], &phrases[2]])
}

#[derive(Deserialize, JsonSchema)]
struct UseSkillArgs {
    /// A script below the skill's scripts/ to run, such as "fill.py". It starts in the workspace.
    script: Option<String>,
    /// Arguments for the script.
    args: Option<Vec<String>>,
    /// Text that the script reads from its standard input.
    stdin: Option<String>,
    /// A file in the skill's folder to read, such as "references/forms.md".
    file: Option<String>,
}

/// The request of a skill call.
enum SkillRequest {
    Instructions,
    File(String),
    Script {
        script: String,
        args: Vec<String>,
        stdin: String,
    },
}

impl UseSkillArgs {
    /// Parses the arguments. An empty text counts as missing, because models often fill in unused
    /// fields.
    fn request(self) -> Result<SkillRequest, ToolError> {
        let non_empty = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let args = self.args.unwrap_or_default();
        let stdin = self.stdin.unwrap_or_default();
        match (non_empty(self.script), non_empty(self.file)) {
            (Some(_), Some(_)) => Err(ToolError(
                "`script` and `file` cannot be combined; make two calls".to_owned(),
            )),
            (Some(script), None) => Ok(SkillRequest::Script {
                script,
                args,
                stdin,
            }),
            (None, _) if !args.is_empty() || !stdin.is_empty() => Err(ToolError(
                "`args` and `stdin` need a script; give it in `script`".to_owned(),
            )),
            (None, Some(file)) => Ok(SkillRequest::File(file)),
            (None, None) => Ok(SkillRequest::Instructions),
        }
    }
}

impl SkillRequest {
    /// Returns the path of the file whose content is needed.
    fn path(&self) -> Option<String> {
        match self {
            Self::Instructions => None,
            Self::File(file) => Some(file.strip_prefix("./").unwrap_or(file).to_owned()),
            Self::Script { script, .. } => Some(script_command::script_path(script)),
        }
    }
}

/// The result of a request, or a script to run.
enum SkillAction {
    Answer(String),
    Run(ScriptCommand, String),
}

async fn use_skill(
    skill: Arc<Skill>,
    run_context: SkillRunContext,
    context: ToolContext,
    args: UseSkillArgs,
) -> Result<String, ToolError> {
    let request = args.request()?;
    let (folder, trusted) = (skill.folder.clone(), run_context.trusted);
    let action = run_blocking(move || prepare(&skill, &trusted, request)).await?;
    match action {
        SkillAction::Answer(answer) => Ok(answer),
        SkillAction::Run(command, stdin) => {
            let command_request = CommandRequest {
                program: command.program()?,
                folder: run_context.workspace,
                stdin,
                timeout: None,
                env: Vec::new(),
                extra_read_paths: vec![folder],
            };
            run_context.shell.run(&context, command_request).await
        }
    }
}

fn prepare(
    skill: &Skill,
    trusted: &TrustFile,
    request: SkillRequest,
) -> Result<SkillAction, ToolError> {
    let path = request.path();
    let contents_of: Vec<&str> = path.as_deref().into_iter().collect();
    let purpose = SnapshotPurpose::Use {
        contents_of: &contents_of,
    };
    let snapshot = verified_snapshot(skill, purpose)?;
    // The call was approved, so this content was reviewed. If the trust cannot be stored, the user
    // is asked again.
    let _ = trusted.trust(skill);
    Ok(match request {
        SkillRequest::Instructions => SkillAction::Answer(instructions(skill, &snapshot)),
        SkillRequest::File(_) => {
            SkillAction::Answer(file_text(&snapshot, path.as_deref().unwrap_or_default())?)
        }
        SkillRequest::Script {
            script,
            args,
            stdin,
        } => SkillAction::Run(
            ScriptCommand::find(skill, &snapshot, &script, &args)?,
            stdin,
        ),
    })
}

/// Returns a snapshot of the current files, or an error if they changed since the skill was read.
fn verified_snapshot(
    skill: &Skill,
    purpose: SnapshotPurpose<'_>,
) -> Result<SkillSnapshot, ToolError> {
    let now = SkillSnapshot::take(&skill.folder, purpose).ok();
    now.filter(|now| now.fingerprint == skill.fingerprint)
        .ok_or_else(|| ToolError(SKILL_CHANGED.to_owned()))
}

fn instructions(skill: &Skill, snapshot: &SkillSnapshot) -> String {
    let body = quote::truncate(&quote::strip_hidden(&skill.body), MAX_BYTES);
    let body = if body.is_empty() {
        "(It has no instructions.)"
    } else {
        &body
    };
    format!(
        "Instructions of the skill {}:\n\n{body}\n\nIts files (`file` reads one, `script` runs one below scripts/):\n{}",
        skill.name,
        file_list(snapshot),
    )
}

fn file_list(snapshot: &SkillSnapshot) -> String {
    let line = |entry: &super::snapshot::SnapshotEntry| match entry.kind {
        SnapshotEntryKind::Link => format!("- {} (link)\n", entry.path),
        SnapshotEntryKind::Plain | SnapshotEntryKind::Executable => {
            format!("- {} ({} bytes)\n", entry.path, entry.size)
        }
    };
    let mut list: String = snapshot
        .files
        .iter()
        .take(MAX_LISTED_FILES)
        .map(line)
        .collect();
    let omitted = snapshot.files.len().saturating_sub(MAX_LISTED_FILES);
    if omitted > 0 {
        list.push_str(&format!("… and {omitted} more\n"));
    }
    list
}

fn file_text(snapshot: &SkillSnapshot, path: &str) -> Result<String, ToolError> {
    let Some(content) = snapshot.content(path) else {
        return Err(unknown_file(snapshot, path));
    };
    if content.contains(&0) {
        return Err(ToolError(format!(
            "{path} is not text ({} bytes)",
            content.len()
        )));
    }
    Ok(quote::truncate(
        &quote::strip_hidden(&String::from_utf8_lossy(content)),
        MAX_BYTES,
    ))
}

fn unknown_file(snapshot: &SkillSnapshot, path: &str) -> ToolError {
    let known = || {
        snapshot
            .files
            .iter()
            .filter(|entry| entry.kind != SnapshotEntryKind::Link)
            .map(|entry| entry.path.as_str())
    };
    let hint = suggest::did_you_mean(path, known()).unwrap_or_else(|| {
        format!(
            "it has: {}",
            known().take(50).collect::<Vec<_>>().join(", ")
        )
    });
    let requested = sanitize::one_line(path);
    ToolError(format!(
        "the skill has no file `{requested}` (paths are relative to its folder); {hint}"
    ))
}
