//! Checks that no compiler makes: layers, sizes, names, wording, agent files, rule ids.

mod agents;
mod features;
mod ids;
mod layers;
mod names;
mod sizes;
mod type_names;
mod wording;

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::root;

pub fn run() -> Result<()> {
    let files = source_files()?;
    let mut problems = Vec::new();
    problems.extend(layers::check()?);
    problems.extend(features::check()?);
    problems.extend(sizes::check(&files));
    problems.extend(names::check(&files));
    problems.extend(type_names::check(&files));
    problems.extend(wording::check(&files)?);
    problems.extend(agents::check());
    problems.extend(ids::check(&files)?);
    if problems.is_empty() {
        println!("tidy: {} files, no problems", files.len());
        return Ok(());
    }
    bail!("{} problems\n{}", problems.len(), problems.join("\n"))
}

/// A file under version control, or one that git does not ignore.
pub struct SourceFile {
    pub path: PathBuf,
    pub text: String,
}

impl SourceFile {
    pub fn is_rust(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    /// Returns true for files that hold only tests.
    pub fn is_test(&self) -> bool {
        self.path
            .components()
            .any(|part| part.as_os_str() == "tests")
    }

    /// Returns the text without the test module at its end.
    pub fn non_test_code(&self) -> &str {
        self.text
            .split("\n#[cfg(test)]\n")
            .next()
            .unwrap_or_default()
    }
}

fn source_files() -> Result<Vec<SourceFile>> {
    let read = |name: String| {
        let path = Path::new(&name).to_owned();
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(SourceFile { path, text })
    };
    let names = listed_files(&["--others", "--exclude-standard", "*.rs", "*.turn"])?;
    Ok(names.into_iter().filter_map(read).collect())
}

/// Lists the files that git tracks; `arguments` add to them or select from them.
fn listed_files(arguments: &[&str]) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached"])
        .args(arguments)
        .current_dir(root())
        .output()
        .context("cannot run git ls-files")?;
    let names = String::from_utf8(listed.stdout)?;
    Ok(names.lines().map(str::to_owned).collect())
}
