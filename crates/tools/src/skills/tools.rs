//! The skill tools: one for each skill, one that lists them, and one that creates a new one.

use std::path::PathBuf;
use std::sync::Arc;

use lango_domain::{Safety, Tool, ToolError};
use lango_text::sanitize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Skill, SkillCatalog, SkillOrigin, TrustFile, create, quote, use_skill};
use crate::shell::Shell;

/// Prefix of the tool name of each skill.
pub(super) const TOOL_PREFIX: &str = "skill_";
const MAX_LISTED_DESCRIPTION_LEN: usize = 300;
const MAX_WARNINGS: usize = 50;

/// Folders of the skill tools.
pub struct SkillSettings {
    /// The folder for new skills. Without it, none can be created.
    pub user_folder: Option<PathBuf>,
    /// The working directory of scripts.
    pub workspace: PathBuf,
}

pub fn tools(catalog: &SkillCatalog, shell: Shell, settings: SkillSettings) -> Vec<Tool> {
    let SkillSettings {
        user_folder,
        workspace,
    } = settings;
    let run_context = use_skill::SkillRunContext {
        shell,
        workspace,
        trusted: catalog.trusted().clone(),
    };
    let skill_tool = |skill: &Arc<Skill>| use_skill::tool(Arc::clone(skill), run_context.clone());
    let mut tools: Vec<Tool> = catalog.skills().iter().map(skill_tool).collect();
    tools.push(list_skills(catalog));
    tools.extend(user_folder.map(|folder| create::tool(catalog, folder)));
    tools
}

/// Runs blocking file work on a thread for blocking tasks.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|_| {
        Err(ToolError(
            "reading or writing the files of the skill failed".to_owned(),
        ))
    })
}

#[derive(Deserialize, JsonSchema)]
struct ListSkillsArgs {}

fn list_skills(catalog: &SkillCatalog) -> Tool {
    let skills = catalog.skills().to_vec();
    let (own, others) = catalog.warnings_for_models();
    let mut warnings: Vec<String> = own
        .iter()
        .take(MAX_WARNINGS)
        .map(|warning| sanitize::one_line(warning))
        .collect();
    if others > 0 {
        warnings.push(format!(
            "{others} in this folder; `lango skill list` shows the user the reasons"
        ));
    }
    let trusted = catalog.trusted().clone();
    let description = "Lists the skills that are there: what each is for, where it comes from, and whether the user has \
                       allowed it before.";
    Tool::new(
        "list_skills",
        description,
        Safety::Safe,
        move |_, _: ListSkillsArgs| {
            let (skills, trusted, warnings) = (skills.clone(), trusted.clone(), warnings.clone());
            run_blocking(move || Ok(format_list(&skills, &trusted, &warnings)))
        },
    )
    .with_untrusted_output()
    .with_phrases([
        "list [all] [my] [the] skills",
        "what skills (do you have|are there)",
        "show [me] [my] [the] skills",
    ])
}

fn format_list(skills: &[Arc<Skill>], trusted: &TrustFile, warnings: &[String]) -> String {
    let line = |skill: &Arc<Skill>| {
        let origin = match skill.origin {
            SkillOrigin::Project => "the project's",
            SkillOrigin::User => "the user's",
        };
        let trust = if trusted.is_trusted(skill) {
            "allowed before"
        } else {
            "not used before"
        };
        let description = if trusted.is_description_visible(skill) {
            quote::truncate_line(&skill.description, MAX_LISTED_DESCRIPTION_LEN)
        } else {
            use_skill::UNCONFIRMED_DESCRIPTION.to_owned()
        };
        format!("- {} ({origin}, {trust}): {description}\n", skill.name)
    };
    let mut list: String = skills.iter().map(line).collect();
    if skills.is_empty() {
        list.push_str("There are no skills yet.\n");
    }
    if !warnings.is_empty() {
        list.push_str("\nNot usable:\n");
        list.extend(warnings.iter().map(|warning| format!("- {warning}\n")));
    }
    list
}
