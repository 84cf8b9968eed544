//! `lango config trust`: what came with a folder is shown, then confirmed as it is.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use lango_app::Loaded;
use lango_app::config::{Asked, ShownFile, beginning};
use lango_domain::text::{one_line, visible};
use lango_tools::skills::{Origin, Shelf, Skill, check, files_of};
use serde_json::{Value, json};

use crate::args::Global;
use crate::commands::{Setting, environment, skill};
use crate::output::{DIM, Failure, NAME, Output, complain, styled};

/// So many files of one skill are named.
const MOST_FILES: usize = 50;

pub fn run(global: &Global, yes: bool) -> Result<Output, Failure> {
    let environment = environment()?;
    let asked = Loaded::asked(&environment, &global.overrides())?;
    let hands = Setting::read(global)?.hands()?;
    let skills = unconfirmed(hands.shelf());
    if asked.is_none() && skills.is_empty() {
        return Err(Failure::usage("there is nothing in this folder that would need it"));
    }
    let shown = told(asked.as_ref(), &skills);
    let json = json!({
        "file": asked.as_ref().map(|asked| &asked.file),
        "trusted": asked.as_ref().map_or(json!({}), |asked| asked.settings.clone()),
        "files": asked.iter().flat_map(|asked| &asked.files).map(file).collect::<Vec<_>>(),
        "skills": skills.iter().map(|skill| json!({ "name": skill.name, "fingerprint": skill.fingerprint })).collect::<Vec<_>>(),
    });
    let is_asked = !yes && std::io::stdin().is_terminal();
    if is_asked && !is_wanted(&shown)? {
        return Err(Failure::denied("nothing was confirmed"));
    }
    if let Some(asked) = asked {
        asked.confirm(&environment)?;
    }
    for skill in &skills {
        hands.shelf().trusted().trust(skill).map_err(|error| Failure::store(error.to_string()))?;
    }
    let confirmed = "Confirmed: it is used from now on, as long as nothing of it changes.\n";
    let plain = if is_asked { confirmed.to_owned() } else { format!("{shown}\n{confirmed}") };
    Ok(Output::new(plain, json))
}

/// Skills of the project that nobody has allowed yet.
fn unconfirmed(shelf: &Shelf) -> Vec<&Skill> {
    let is_new = |skill: &&Skill| skill.origin == Origin::Project && !shelf.trusted().is_trusted(skill);
    shelf.skills().iter().map(AsRef::as_ref).filter(is_new).collect()
}

fn told(asked: Option<&Asked>, skills: &[&Skill]) -> String {
    let mut text = String::new();
    if let Some(Asked { file, settings, files, .. }) = asked {
        let place = one_line(&file.to_string_lossy());
        let _ = writeln!(text, "{} sets:\n{}", styled(NAME, place), visible(&format!("{settings:#}")));
        for ShownFile { path, bytes, text: beginning } in files {
            let path = styled(NAME, one_line(&path.to_string_lossy()));
            let _ = writeln!(text, "\n{path}  {}\n{beginning}", styled(DIM, format!("({bytes} bytes)")));
        }
    }
    for skill in skills {
        let _ = writeln!(text, "\nThe skill {}", told_skill(skill));
    }
    text
}

/// What models read of a skill, and what else is in its folder.
fn told_skill(skill: &Skill) -> String {
    let name = styled(NAME, &skill.name);
    let (description, body) = (beginning(&skill.description), beginning(&skill.body));
    let mut text = format!("{name}  {description}\n{body}\n");
    let files = files_of(skill).unwrap_or_default();
    for (path, bytes) in files.iter().take(MOST_FILES) {
        let _ = writeln!(text, "- {}  {}", one_line(path), styled(DIM, format!("({bytes} bytes)")));
    }
    if files.len() > MOST_FILES {
        let _ = writeln!(text, "… and {} more files", files.len() - MOST_FILES);
    }
    text + &skill::lines(&check(&skill.folder))
}

fn file(file: &ShownFile) -> Value {
    json!({ "path": file.path, "bytes": file.bytes, "text": file.text })
}

fn is_wanted(shown: &str) -> Result<bool, Failure> {
    complain(shown);
    let _ = write!(
        anstream::stderr(),
        "Use this from now on? Scripts of skills will still ask before they run. [y/n] "
    );
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
