//! Requests with the agent that must act first: one a line, tab-separated label, language, text.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lango_models::offline::weights::LABELS;

#[derive(Clone, Debug)]
pub struct Sample {
    pub label: usize,
    pub language: String,
    pub text: String,
    /// The file of the sample. Each file has one writer.
    pub source: String,
}

/// Loads every sample of a folder of `evals/routing`.
pub fn read(folder: &str) -> Result<Vec<Sample>> {
    let folder = crate::root().join("evals/routing").join(folder);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "tsv"));
    files.sort();
    let mut samples = Vec::new();
    for file in files {
        samples.extend(read_file(&file)?);
    }
    Ok(samples)
}

fn read_file(file: &Path) -> Result<Vec<Sample>> {
    let source = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut samples = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", file.display(), number + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        let [label, language, text] = fields[..] else {
            bail!("{}: expected three fields", place())
        };
        let Some(label) = LABELS.iter().position(|known| *known == label) else {
            bail!("{}: unknown label `{label}`", place())
        };
        let (language, text, source) = (language.to_owned(), text.to_owned(), source.clone());
        samples.push(Sample {
            label,
            language,
            text,
            source,
        });
    }
    Ok(samples)
}
