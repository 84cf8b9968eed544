//! What a compiler does not check about the house.

mod agents;
mod ids;
mod layers;
mod names;
mod sizes;

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::root;

pub fn run() -> Result<()> {
    let files = source_files()?;
    let mut complaints = Vec::new();
    complaints.extend(layers::check()?);
    complaints.extend(sizes::check(&files));
    complaints.extend(names::check(&files));
    complaints.extend(agents::check());
    complaints.extend(ids::check(&files)?);
    if complaints.is_empty() {
        println!("tidy: {} files, all in order", files.len());
        return Ok(());
    }
    bail!("{} complaints\n{}", complaints.len(), complaints.join("\n"))
}

/// A file under version control, or about to be.
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

    /// Whether the whole file is a test.
    pub fn is_test(&self) -> bool {
        self.path
            .components()
            .any(|part| part.as_os_str() == "tests")
    }

    /// The file without the tests at its end.
    pub fn non_test_code(&self) -> &str {
        self.text
            .split("\n#[cfg(test)]\n")
            .next()
            .unwrap_or_default()
    }
}

fn source_files() -> Result<Vec<SourceFile>> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.rs",
            "*.turn",
        ])
        .current_dir(root())
        .output()
        .context("cannot ask git for the files")?;
    let names = String::from_utf8(listed.stdout)?;
    let read = |name: &str| {
        let path = Path::new(name).to_owned();
        fs::read_to_string(root().join(&path))
            .ok()
            .map(|text| SourceFile { path, text })
    };
    Ok(names.lines().filter_map(read).collect())
}
