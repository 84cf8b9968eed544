//! Facts from files and into files.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_domain::text::one_line;
use lango_knowledge::graph::exchange::{self, Format, Imported, Progress};
use lango_knowledge::graph::{Found, Graph, Pattern, When, told};
use serde_json::json;

use super::super::Setting;
use crate::args::FactFormat;
use crate::output::{Failure, Output};

pub async fn import(
    setting: &Setting,
    graph: &Graph,
    files: &[PathBuf],
    format: Option<FactFormat>,
) -> Result<Output, Failure> {
    let (mut all, mut warnings, mut mistakes) = (Imported::default(), Vec::new(), Vec::new());
    for file in files {
        let (lines, source) = open(setting, file)?;
        let format = format.map(format_of).or_else(|| Format::of(file)).unwrap_or(Format::Tsv);
        let (of, shown) = (Principal::local(), one_line(&file.display().to_string()));
        let imported = exchange::import(graph, &of, lines, (format, source), &show_progress).await?;
        for (line, why) in &imported.mistakes {
            warnings.push(format!("{shown}:{line}: left out: {}", one_line(&why.to_string())));
            mistakes.push(json!({ "file": shown, "line": line, "why": why.to_string() }));
        }
        let untold = imported.skipped - imported.mistakes.len();
        if untold > 0 {
            warnings.push(format!("{shown}: {untold} more lines were left out"));
        }
        all.facts += imported.facts;
        all.known += imported.known;
        all.skipped += imported.skipped;
    }
    let Imported { facts, known, skipped, .. } = all;
    let plain = format!("{facts} facts taken in, {known} known before, {skipped} lines left out.\n");
    let json = json!({ "facts": facts, "known": known, "skipped": skipped, "mistakes": mistakes });
    Ok(Output::new(plain, json).with_warnings(warnings))
}

fn format_of(format: FactFormat) -> Format {
    match format {
        FactFormat::Tsv => Format::Tsv,
        FactFormat::Nt => Format::NTriples,
        FactFormat::Jsonl => Format::JsonLines,
    }
}

fn open(setting: &Setting, file: &Path) -> Result<(Box<dyn BufRead + Send>, FactSource), Failure> {
    if file == Path::new("-") {
        return Ok((Box::new(BufReader::new(std::io::stdin())), FactSource::Import("-".to_owned())));
    }
    let wrong = |error| Failure::usage(format!("{}: {error}", file.display()));
    let path = setting.environment.working_folder.join(file).canonicalize().map_err(wrong)?;
    let opened = File::open(&path).map_err(wrong)?;
    if path.is_dir() {
        return Err(Failure::usage(format!("{} is a folder", file.display())));
    }
    let source = FactSource::Import(path.to_string_lossy().into_owned());
    Ok((Box::new(BufReader::with_capacity(1 << 18, opened)), source))
}

/// On a terminal only.
fn show_progress(progress: Progress) {
    if std::io::stderr().is_terminal() {
        let _ =
            write!(anstream::stderr(), "\r{} facts", progress.facts).and_then(|()| std::io::stderr().flush());
    }
}

pub async fn export(
    setting: &Setting,
    graph: &Graph,
    file: Option<PathBuf>,
    format: Option<FactFormat>,
) -> Result<Output, Failure> {
    let view = graph.view(&Principal::local()).await?;
    let by_name = file.as_deref().and_then(Format::of);
    let format = format.map(format_of).or(by_name).unwrap_or(Format::Tsv);
    let now = When::At(graph.now());
    let Some(file) = file else {
        let mut text = Vec::new();
        exchange::export(&view, format, now, &mut text).map_err(|error| Failure::store(error.to_string()))?;
        let all = view.query(Pattern::default(), When::Ever, usize::MAX);
        let json = told(&view, &Found { facts: all.facts, more: false });
        return Ok(Output::new(String::from_utf8_lossy(&text).into_owned(), json));
    };
    let path = setting.environment.working_folder.join(&file);
    let wrong = |error| Failure::usage(format!("{}: {error}", file.display()));
    let mut out = BufWriter::new(File::create_new(&path).map_err(wrong)?);
    let facts = exchange::export(&view, format, now, &mut out).map_err(wrong)?;
    out.flush().map_err(wrong)?;
    Ok(Output::new(format!("{facts} facts written.\n"), json!({ "facts": facts })))
}
