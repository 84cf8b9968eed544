//! Facts from files and into files.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_domain::text::one_line;
use lango_knowledge::graph::import_export::{self, FactFileFormat, ImportProgress, ImportReport};
use lango_knowledge::graph::{AsOf, FactHits, FactPattern, Graph, facts_json};
use serde_json::json;

use super::super::CommandContext;
use crate::args::FactFormat;
use crate::output::{CliError, CommandOutput};

pub async fn import(
    setting: &CommandContext,
    graph: &Graph,
    files: &[PathBuf],
    format: Option<FactFormat>,
) -> Result<CommandOutput, CliError> {
    let (mut all, mut warnings, mut mistakes) = (ImportReport::default(), Vec::new(), Vec::new());
    for file in files {
        let (lines, source) = open_source(setting, file)?;
        let format = format
            .map(to_file_format)
            .or_else(|| FactFileFormat::from_path(file))
            .unwrap_or(FactFileFormat::Tsv);
        let (of, shown) = (Principal::local(), one_line(&file.display().to_string()));
        let imported =
            import_export::import(graph, &of, lines, (format, source), &print_progress).await?;
        for (line, why) in &imported.errors {
            warnings.push(format!(
                "{shown}:{line}: left out: {}",
                one_line(&why.to_string())
            ));
            mistakes.push(json!({ "file": shown, "line": line, "why": why.to_string() }));
        }
        let untold = imported.skipped - imported.errors.len();
        if untold > 0 {
            warnings.push(format!("{shown}: {untold} more lines were left out"));
        }
        all.facts += imported.facts;
        all.known += imported.known;
        all.skipped += imported.skipped;
    }
    let ImportReport {
        facts,
        known,
        skipped,
        ..
    } = all;
    let plain =
        format!("{facts} facts taken in, {known} known before, {skipped} lines left out.\n");
    let json = json!({ "facts": facts, "known": known, "skipped": skipped, "mistakes": mistakes });
    Ok(CommandOutput::new(plain, json).with_warnings(warnings))
}

fn to_file_format(format: FactFormat) -> FactFileFormat {
    match format {
        FactFormat::Tsv => FactFileFormat::Tsv,
        FactFormat::Nt => FactFileFormat::NTriples,
        FactFormat::Jsonl => FactFileFormat::JsonLines,
    }
}

fn open_source(
    setting: &CommandContext,
    file: &Path,
) -> Result<(Box<dyn BufRead + Send>, FactSource), CliError> {
    if file == Path::new("-") {
        return Ok((
            Box::new(BufReader::new(std::io::stdin())),
            FactSource::Import("-".to_owned()),
        ));
    }
    let wrong = |error| CliError::usage(format!("{}: {error}", file.display()));
    let path = setting
        .environment
        .working_folder
        .join(file)
        .canonicalize()
        .map_err(wrong)?;
    let opened = File::open(&path).map_err(wrong)?;
    if path.is_dir() {
        return Err(CliError::usage(format!("{} is a folder", file.display())));
    }
    let source = FactSource::Import(path.to_string_lossy().into_owned());
    Ok((Box::new(BufReader::with_capacity(1 << 18, opened)), source))
}

/// On a terminal only.
fn print_progress(progress: ImportProgress) {
    if std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "\r{} facts", progress.facts)
            .and_then(|()| std::io::stderr().flush());
    }
}

pub async fn export(
    setting: &CommandContext,
    graph: &Graph,
    file: Option<PathBuf>,
    format: Option<FactFormat>,
) -> Result<CommandOutput, CliError> {
    let view = graph.snapshot(&Principal::local()).await?;
    let by_name = file.as_deref().and_then(FactFileFormat::from_path);
    let format = format
        .map(to_file_format)
        .or(by_name)
        .unwrap_or(FactFileFormat::Tsv);
    let now = AsOf::At(graph.now());
    let Some(file) = file else {
        let mut text = Vec::new();
        import_export::export(&view, format, now, &mut text)
            .map_err(|error| CliError::store(error.to_string()))?;
        let all = view.query(FactPattern::default(), AsOf::AnyTime, usize::MAX);
        let json = facts_json(
            &view,
            &FactHits {
                facts: all.facts,
                has_more: false,
            },
        );
        return Ok(CommandOutput::new(
            String::from_utf8_lossy(&text).into_owned(),
            json,
        ));
    };
    let path = setting.environment.working_folder.join(&file);
    let wrong = |error| CliError::usage(format!("{}: {error}", file.display()));
    let mut out = BufWriter::new(File::create_new(&path).map_err(wrong)?);
    let facts = import_export::export(&view, format, now, &mut out).map_err(wrong)?;
    out.flush().map_err(wrong)?;
    Ok(CommandOutput::new(
        format!("{facts} facts written.\n"),
        json!({ "facts": facts }),
    ))
}
