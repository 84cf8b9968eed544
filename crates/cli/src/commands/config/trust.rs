//! `lango config trust`: shows the settings and files of a project, then trusts exactly those.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use lango_app::LoadedConfig;
use lango_app::capability::tools::skills::{Skill, SkillCatalog, SkillOrigin, check, list_files};
use lango_app::config::{PreviewFile, TrustPreview, TrustRequest};
use lango_text::sanitize::{escape_hidden_chars, one_line};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::commands::{CommandContext, environment, skill};
use crate::confirmation::confirm;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

const QUESTION: &str = "Trust these settings and files? Skill scripts still ask before they run.";

pub fn run(global: &GlobalArgs, yes: bool) -> Result<CommandOutput, CliError> {
    let environment = environment()?;
    let request = LoadedConfig::trust_request(&environment, &global.overrides())?;
    let toolset = CommandContext::load(global)?.toolset()?;
    let skills = unconfirmed_skills(toolset.skills());
    if request.is_none() && skills.is_empty() {
        return Err(CliError::usage(
            "nothing in this folder needs to be trusted",
        ));
    }
    let preview = format_request(request.as_ref(), &skills)?;
    let json = json!({
        "file": request.as_ref().map(|request| &request.file),
        "trusted": request.as_ref().map_or(json!({}), |request| request.settings.clone()),
        "files": request.iter().flat_map(|request| &request.files).map(file_json).collect::<Vec<_>>(),
        "skills": skills.iter().map(|skill| json!({ "name": skill.name, "fingerprint": skill.fingerprint })).collect::<Vec<_>>(),
    });
    let is_interactive = !yes && std::io::stdin().is_terminal();
    if is_interactive && !confirm(&preview, QUESTION)? {
        return Err(CliError::denied("cancelled; nothing was trusted"));
    }
    if let Some(request) = request {
        request.confirm(&environment)?;
    }
    for skill in &skills {
        toolset
            .skills()
            .trusted()
            .trust(skill)
            .map_err(|error| CliError::store(error.to_string()))?;
    }
    let confirmed = "Trusted: these settings and files are used until one of them changes.\n";
    let plain = if is_interactive {
        confirmed.to_owned()
    } else {
        format!("{preview}\n{confirmed}")
    };
    Ok(CommandOutput::new(plain, json))
}

/// Returns the skills of the project that are not trusted yet.
fn unconfirmed_skills(catalog: &SkillCatalog) -> Vec<&Skill> {
    let is_new = |skill: &&Skill| {
        skill.origin == SkillOrigin::Project && !catalog.trusted().is_trusted(skill)
    };
    catalog
        .skills()
        .iter()
        .map(AsRef::as_ref)
        .filter(is_new)
        .collect()
}

fn format_request(request: Option<&TrustRequest>, skills: &[&Skill]) -> Result<String, CliError> {
    let mut text = String::new();
    if let Some(TrustRequest {
        file,
        settings,
        files,
        ..
    }) = request
    {
        let settings = escape_hidden_chars(&format!("{settings:#}"));
        let _ = writeln!(
            text,
            "{} sets:\n{settings}",
            styled(NAME, display_path(&file.to_string_lossy()))
        );
        for PreviewFile {
            path,
            bytes,
            text: content,
        } in files
        {
            let path = styled(NAME, display_path(&path.to_string_lossy()));
            let _ = writeln!(
                text,
                "\n{path}  {}\n{content}",
                styled(DIM, format!("({bytes} bytes)"))
            );
        }
    }
    let mut preview = TrustPreview::default();
    for skill in skills {
        let _ = writeln!(text, "\nSkill {}", format_skill(skill, &mut preview)?);
    }
    Ok(text)
}

/// Returns the text of a skill that models read, and the list of its files.
fn format_skill(skill: &Skill, preview: &mut TrustPreview) -> Result<String, CliError> {
    let name = styled(NAME, &skill.name);
    let (description, body) = (
        preview.add_text(&skill.description)?,
        preview.add_text(&skill.body)?,
    );
    let mut text = format!("{name}  {description}\n{body}\n");
    let files = list_files(skill).ok_or_else(|| {
        CliError::usage(format!(
            "cannot trust the skill {}: it changed while it was read",
            skill.name
        ))
        .with_hint("run the command again")
    })?;
    for (path, bytes) in files {
        let path = display_path(&preview.add_text(&path)?);
        let _ = writeln!(
            text,
            "- {path}  {}",
            styled(DIM, format!("({bytes} bytes)"))
        );
    }
    Ok(text + &skill::finding_lines(&check(&skill.folder)))
}

/// Returns a path on one line, with hidden characters escaped.
fn display_path(path: &str) -> String {
    one_line(&escape_hidden_chars(path))
}

fn file_json(file: &PreviewFile) -> Value {
    json!({ "path": file.path, "bytes": file.bytes, "text": file.text })
}
