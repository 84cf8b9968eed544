//! `lango skill …`: lists, checks and installs skills.

use std::fmt::Write as _;
use std::path::Path;

use lango_app::capability::tools::skills::{
    Finding, FindingLevel, Skill, SkillCatalog, SkillOrigin, check, install_from, read_skill,
};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::CommandContext;
use crate::args::{GlobalArgs, SkillCommand};
use crate::confirmation::{can_ask, confirm};
use crate::output::{CliError, CommandOutput, DIM, ERROR, NAME, styled};

pub fn run(global: &GlobalArgs, command: &SkillCommand) -> Result<CommandOutput, CliError> {
    if let SkillCommand::Check { path } = command {
        return check_skill(path);
    }
    let context = CommandContext::load(global)?;
    let toolset = context.toolset()?;
    match command {
        SkillCommand::List => Ok(list(toolset.skills())),
        SkillCommand::Show { name } => show(toolset.skills(), name),
        SkillCommand::Add { path, yes } => install_skill(&context, toolset.skills(), path, *yes),
        SkillCommand::Check { path } => check_skill(path),
    }
}

fn list(catalog: &SkillCatalog) -> CommandOutput {
    let mut plain = String::new();
    for skill in catalog.skills() {
        let trusted = if catalog.trusted().is_trusted(skill) {
            ""
        } else {
            ", not trusted"
        };
        let origin = styled(DIM, format!("({}{trusted})", origin_name(skill)));
        let _ = writeln!(
            plain,
            "{}  {} {origin}",
            styled(NAME, &skill.name),
            strip_control_chars(&skill.description)
        );
    }
    if catalog.skills().is_empty() {
        plain.push_str("There are no skills. Add one with `lango skill add PATH`.\n");
    }
    let items: Vec<Value> = catalog
        .skills()
        .iter()
        .map(|skill| skill_json(catalog, skill))
        .collect();
    CommandOutput::new(plain, json!({ "items": items })).with_warnings(catalog.warnings().to_vec())
}

fn skill_json(catalog: &SkillCatalog, skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "origin": origin_name(skill),
        "trusted": catalog.trusted().is_trusted(skill),
        "folder": skill.folder,
        "allowed_tools": skill.allowed_tools,
        "fingerprint": skill.fingerprint,
    })
}

fn origin_name(skill: &Skill) -> &'static str {
    match skill.origin {
        SkillOrigin::Project => "project",
        SkillOrigin::User => "user",
    }
}

fn show(catalog: &SkillCatalog, name: &str) -> Result<CommandOutput, CliError> {
    let skill = catalog
        .get(name)
        .map_err(|unknown| CliError::usage(unknown.to_string()))?;
    let mut json = skill_json(catalog, skill);
    json["body"] = Value::from(skill.body.as_str());
    Ok(CommandOutput::new(format_skill(skill), json))
}

fn format_skill(skill: &Skill) -> String {
    let folder = one_line(&skill.folder.display().to_string());
    let tools = if skill.allowed_tools.is_empty() {
        "none listed".to_owned()
    } else {
        skill.allowed_tools.join(", ")
    };
    format!(
        "{}  {}\n{}\n\n{}\n",
        styled(NAME, &skill.name),
        strip_control_chars(&skill.description),
        styled(
            DIM,
            format!("{folder}, tools: {}", strip_control_chars(&tools))
        ),
        strip_control_chars(skill.body.trim())
    )
}

fn check_skill(path: &Path) -> Result<CommandOutput, CliError> {
    let findings = check(path);
    let json = json!({ "items": findings.iter().map(finding_json).collect::<Vec<_>>() });
    let plain = if findings.is_empty() {
        "No problems found.\n".to_owned()
    } else {
        finding_lines(&findings)
    };
    match findings
        .iter()
        .find(|finding| finding.level == FindingLevel::Error)
    {
        Some(error) => {
            let others = findings.len() - 1;
            let more = if others > 0 {
                format!(" (and {others} more findings)")
            } else {
                String::new()
            };
            Err(CliError::usage(format!(
                "{}: {}{more}",
                error.location, error.message
            )))
        }
        None => Ok(CommandOutput::new(plain, json)),
    }
}

fn finding_json(finding: &Finding) -> Value {
    let level = if finding.level == FindingLevel::Error {
        "error"
    } else {
        "warning"
    };
    json!({ "level": level, "place": finding.location, "message": finding.message })
}

pub fn finding_lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let level = match finding.level {
            FindingLevel::Error => styled(ERROR, "error"),
            FindingLevel::Warning => styled(NAME, "warning"),
        };
        format!(
            "{level}  {}: {}\n",
            strip_control_chars(&finding.location),
            strip_control_chars(&finding.message)
        )
    };
    findings.iter().map(line).collect()
}

/// Copies a skill to the user's folder, after it was shown and confirmed.
fn install_skill(
    context: &CommandContext,
    catalog: &SkillCatalog,
    path: &Path,
    yes: bool,
) -> Result<CommandOutput, CliError> {
    let Some(folder) = context.environment.config_folder() else {
        return Err(CliError::usage("there is no user folder for skills")
            .with_hint("set HOME or LANGO_HOME"));
    };
    let source =
        read_skill(path, SkillOrigin::User).map_err(|error| CliError::usage(error.to_string()))?;
    if !yes && !confirm_install(&source, &check(path))? {
        return Err(CliError::denied("cancelled; the skill was not added"));
    }
    let skill = install_from(path, &folder).map_err(|error| CliError::usage(error.to_string()))?;
    // Trust the copy only if it is what was shown.
    if skill.fingerprint == source.fingerprint {
        catalog
            .trusted()
            .trust(&skill)
            .map_err(|error| CliError::store(error.to_string()))?;
    }
    let plain = format!(
        "{} is available from the next turn.\n",
        styled(NAME, &skill.name)
    );
    Ok(CommandOutput::new(
        plain,
        json!({ "added": skill.name, "folder": skill.folder }),
    ))
}

fn confirm_install(skill: &Skill, findings: &[Finding]) -> Result<bool, CliError> {
    if !can_ask() {
        return Err(CliError::denied(
            "the skill was not added because there is no terminal to confirm it",
        )
        .with_hint("read the skill, then pass --yes"));
    }
    let details = format!(
        "{}\n{}",
        format_skill(skill).trim_end(),
        finding_lines(findings)
    );
    confirm(
        &details,
        "Add this skill? Its scripts still ask before they run.",
    )
}
