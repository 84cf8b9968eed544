//! `create_skill`: writes a new skill after the user has reviewed all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::{Intent, Safety, Tool, ToolError};
use lango_text::sanitize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::install::{NewSkillFile, check_not_existing, install};
use super::tools::run_blocking;
use super::{
    MAX_SKILL_FILE_BYTES, SKILL_FILE, SkillCatalog, TrustFile, catalog, quote, skill_file,
};

const MAX_SCRIPTS: usize = 50;
const MAX_SCRIPT_NAME_LEN: usize = 100;
const MAX_DEFAULT_DESCRIPTION_LEN: usize = 300;

pub(super) fn tool(catalog: &SkillCatalog, user_folder: PathBuf) -> Tool {
    let creator = Arc::new(SkillCreator {
        used_names: catalog
            .skills()
            .iter()
            .map(|skill| skill.name.clone())
            .collect(),
        trusted: catalog.trusted().clone(),
        user_folder,
    });
    let intent_creator = Arc::clone(&creator);
    let description = "Writes a new skill for the user: instructions, and scripts if need be, that can be used again in \
                       later turns. Scripts should begin with a line such as `#!/bin/sh`.";
    Tool::new(
        "create_skill",
        description,
        Safety::Dangerous,
        move |_, args: CreateSkillArgs| {
            let creator = Arc::clone(&creator);
            run_blocking(move || creator.create(args))
        },
    )
    .with_intent(move |_, args: CreateSkillArgs| {
        let creator = Arc::clone(&intent_creator);
        run_blocking(move || creator.intent(args))
    })
    .with_phrases(["create [a] [new] skill (called|named) {name:word} (that|to|which) {body}"])
}

#[derive(Deserialize, JsonSchema)]
struct CreateSkillArgs {
    /// 1 to 58 characters of a-z, 0-9 and single hyphens: "release-notes".
    name: String,
    #[schemars(
        description = "What it does and when to use it, on one line. The first line of the body if left out."
    )]
    description: Option<String>,
    /// The instructions, in markdown.
    body: String,
    /// From file name to content; they go to scripts/.
    scripts: Option<BTreeMap<String, String>>,
    /// Tools that the skill needs.
    allowed_tools: Option<Vec<String>>,
}

/// A valid skill that is not written yet.
struct SkillDraft {
    name: String,
    files: Vec<NewSkillFile>,
}

/// Creates skills in the user's folder.
struct SkillCreator {
    used_names: BTreeSet<String>,
    trusted: TrustFile,
    user_folder: PathBuf,
}

impl SkillCreator {
    fn intent(&self, args: CreateSkillArgs) -> Result<Intent, ToolError> {
        let draft = self.draft(args)?;
        let folder = sanitize::one_line(&self.skill_path(&draft.name).to_string_lossy());
        let mut shows = format!("Writes the skill {} to {folder}:\n", draft.name);
        for file in &draft.files {
            let mode = if file.executable { " (executable)" } else { "" };
            let content = quote::whole_block(&String::from_utf8_lossy(&file.content));
            // Writing into a string cannot fail.
            let _ = write!(shows, "\n{}{mode}\n{content}", file.path);
        }
        Ok(Intent {
            level: Safety::Dangerous,
            shows,
            subject: draft.name,
            pattern: None,
        })
    }

    fn create(&self, args: CreateSkillArgs) -> Result<String, ToolError> {
        let draft = self.draft(args)?;
        let skill = install(&draft.name, &draft.files, &self.user_folder)
            .map_err(|error| ToolError(error.to_string()))?;
        // The user reviewed all of it. If the trust cannot be stored, the first use asks again.
        let _ = self.trusted.trust(&skill);
        let folder = sanitize::one_line(&skill.folder.to_string_lossy());
        Ok(format!(
            "The skill {} is in {folder}. It can be used from the next turn on.",
            skill.name
        ))
    }

    fn draft(&self, args: CreateSkillArgs) -> Result<SkillDraft, ToolError> {
        let draft = SkillDraft::new(args).map_err(ToolError)?;
        if self.used_names.contains(&draft.name) {
            return Err(ToolError(format!(
                "a skill `{}` already exists; choose another name",
                draft.name
            )));
        }
        check_not_existing(&self.skill_path(&draft.name))
            .map_err(|error| ToolError(error.to_string()))?;
        Ok(draft)
    }

    fn skill_path(&self, name: &str) -> PathBuf {
        Path::new(&self.user_folder).join("skills").join(name)
    }
}

impl SkillDraft {
    fn new(args: CreateSkillArgs) -> Result<Self, String> {
        skill_file::check_name(&args.name)?;
        if let Some(problem) = catalog::tool_name_problem(&args.name) {
            return Err(problem);
        }
        let page = build_skill_file(&args)?;
        check_content(SKILL_FILE, &page)?;
        // The generated file must parse for every input.
        skill_file::parse(&page).map_err(|error| format!("{SKILL_FILE}: {error}"))?;
        let mut files = vec![NewSkillFile {
            path: SKILL_FILE.to_owned(),
            executable: false,
            content: page.into_bytes(),
        }];
        let scripts = args.scripts.unwrap_or_default();
        if scripts.len() > MAX_SCRIPTS {
            return Err(format!(
                "{} scripts are too many; the limit is {MAX_SCRIPTS}",
                scripts.len()
            ));
        }
        for (name, content) in scripts {
            check_script_name(&name)?;
            check_content(&name, &content)?;
            let executable = content.starts_with("#!");
            files.push(NewSkillFile {
                path: format!("scripts/{name}"),
                executable,
                content: content.into_bytes(),
            });
        }
        Ok(Self {
            name: args.name,
            files,
        })
    }
}

fn build_skill_file(args: &CreateSkillArgs) -> Result<String, String> {
    let body = args.body.trim();
    if body.is_empty() {
        return Err("`body` is empty; it must contain the instructions".to_owned());
    }
    let first = body
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches(['#', ' ']);
    let given = args
        .description
        .as_deref()
        .filter(|text| !text.trim().is_empty());
    let default = || quote::truncate_line(first, MAX_DEFAULT_DESCRIPTION_LEN);
    let description =
        skill_file::normalize_description(&given.map_or_else(default, str::to_owned))?;
    // A JSON string is a YAML string.
    let mut page = format!(
        "---\nname: {}\ndescription: {}\n",
        args.name,
        serde_json::Value::from(description)
    );
    let tools = args.allowed_tools.as_deref().unwrap_or_default();
    if !tools.is_empty() {
        let list = serde_json::to_string(tools).map_err(|error| error.to_string())?;
        let _ = writeln!(page, "allowed-tools: {list}");
    }
    let _ = write!(page, "---\n\n{body}\n");
    Ok(page)
}

/// Rejects content that the user cannot fully review: hidden characters or too much text.
fn check_content(name: &str, content: &str) -> Result<(), String> {
    if let Some(hidden) = content.chars().find(|c| quote::is_hidden(*c) || *c == '\r') {
        return Err(format!(
            "{name} has a hidden character (U+{:04X}); remove it",
            u32::from(hidden)
        ));
    }
    if content.len() > MAX_SKILL_FILE_BYTES {
        return Err(format!(
            "{name} is larger than {} KiB",
            MAX_SKILL_FILE_BYTES / 1024
        ));
    }
    Ok(())
}

fn check_script_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_start_valid = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if name.len() > MAX_SCRIPT_NAME_LEN || !is_start_valid || !name.chars().all(is_allowed) {
        let name = sanitize::one_line(name);
        return Err(format!(
            "invalid script name `{name}`; use a file name of letters, digits, `.`, `_` and `-`"
        ));
    }
    Ok(())
}
