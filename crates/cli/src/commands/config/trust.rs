//! `lango config trust`: what came with a folder is shown, then confirmed as it is.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use lango_app::LoadedConfig;
use lango_app::config::{PreviewFile, TrustPreview, TrustRequest};
use lango_domain::text::{escape_hidden_chars, one_line};
use lango_tools::skills::{Skill, SkillCatalog, SkillOrigin, check, list_files};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::commands::{CommandContext, environment, skill};
use crate::output::{CliError, CommandOutput, DIM, NAME, print_stderr, styled};

pub fn run(global: &GlobalArgs, yes: bool) -> Result<CommandOutput, CliError> {
    let environment = environment()?;
    let asked = LoadedConfig::trust_request(&environment, &global.overrides())?;
    let hands = CommandContext::load(global)?.toolset()?;
    let skills = unconfirmed_skills(hands.skills());
    if asked.is_none() && skills.is_empty() {
        return Err(CliError::usage(
            "there is nothing in this folder that would need it",
        ));
    }
    let shown = format_request(asked.as_ref(), &skills)?;
    let json = json!({
        "file": asked.as_ref().map(|asked| &asked.file),
        "trusted": asked.as_ref().map_or(json!({}), |asked| asked.settings.clone()),
        "files": asked.iter().flat_map(|asked| &asked.files).map(file_json).collect::<Vec<_>>(),
        "skills": skills.iter().map(|skill| json!({ "name": skill.name, "fingerprint": skill.fingerprint })).collect::<Vec<_>>(),
    });
    let is_asked = !yes && std::io::stdin().is_terminal();
    if is_asked && !confirm_trust(&shown)? {
        return Err(CliError::denied("nothing was confirmed"));
    }
    if let Some(asked) = asked {
        asked.confirm(&environment)?;
    }
    for skill in &skills {
        hands
            .skills()
            .trusted()
            .trust(skill)
            .map_err(|error| CliError::store(error.to_string()))?;
    }
    let confirmed = "Confirmed: it is used from now on, as long as nothing of it changes.\n";
    let plain = if is_asked {
        confirmed.to_owned()
    } else {
        format!("{shown}\n{confirmed}")
    };
    Ok(CommandOutput::new(plain, json))
}

/// Skills of the project that nobody has allowed yet.
fn unconfirmed_skills(shelf: &SkillCatalog) -> Vec<&Skill> {
    let is_new =
        |skill: &&Skill| skill.origin == SkillOrigin::Project && !shelf.trusted().is_trusted(skill);
    shelf
        .skills()
        .iter()
        .map(AsRef::as_ref)
        .filter(is_new)
        .collect()
}

fn format_request(asked: Option<&TrustRequest>, skills: &[&Skill]) -> Result<String, CliError> {
    let mut text = String::new();
    if let Some(TrustRequest {
        file,
        settings,
        files,
        ..
    }) = asked
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
    let mut shown = TrustPreview::default();
    for skill in skills {
        let _ = writeln!(text, "\nThe skill {}", format_skill(skill, &mut shown)?);
    }
    Ok(text)
}

/// What models read of a skill, and what else is in its folder.
fn format_skill(skill: &Skill, shown: &mut TrustPreview) -> Result<String, CliError> {
    let name = styled(NAME, &skill.name);
    let (description, body) = (
        shown.add_text(&skill.description)?,
        shown.add_text(&skill.body)?,
    );
    let mut text = format!("{name}  {description}\n{body}\n");
    let files = list_files(skill).ok_or_else(|| {
        CliError::usage(format!(
            "the skill {} cannot be confirmed: it changed just now",
            skill.name
        ))
        .with_hint("look at it again")
    })?;
    for (path, bytes) in files {
        let path = display_path(&shown.add_text(&path)?);
        let _ = writeln!(
            text,
            "- {path}  {}",
            styled(DIM, format!("({bytes} bytes)"))
        );
    }
    Ok(text + &skill::finding_lines(&check(&skill.folder)))
}

/// A path on one line, with what hides in it.
fn display_path(path: &str) -> String {
    one_line(&escape_hidden_chars(path))
}

fn file_json(file: &PreviewFile) -> Value {
    json!({ "path": file.path, "bytes": file.bytes, "text": file.text })
}

fn confirm_trust(shown: &str) -> Result<bool, CliError> {
    print_stderr(shown);
    let _ = write!(
        anstream::stderr(),
        "Use this from now on? Scripts of skills will still ask before they run. [y/n] "
    );
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| CliError::usage(error.to_string()))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
