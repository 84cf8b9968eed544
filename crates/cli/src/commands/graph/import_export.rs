//! Imports facts from files, and exports them.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use lango_app::capability::graph::import_export::{
    self, FactFileFormat, ImportProgress, ImportReport,
};
use lango_app::capability::graph::{AsOf, FactHits, FactPattern, Graph, facts_json};
use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_text::sanitize::one_line;
use serde_json::json;

use super::super::CommandContext;
use crate::args::FactFormat;
use crate::output::{CliError, CommandOutput};

pub async fn import(
    context: &CommandContext,
    graph: &Graph,
    files: &[PathBuf],
    format: Option<FactFormat>,
) -> Result<CommandOutput, CliError> {
    let (mut total, mut warnings, mut errors) = (ImportReport::default(), Vec::new(), Vec::new());
    for file in files {
        let (lines, source) = open_source(context, file)?;
        let format = format
            .map(to_file_format)
            .or_else(|| FactFileFormat::from_path(file))
            .unwrap_or(FactFileFormat::Tsv);
        let (principal, name) = (Principal::local(), one_line(&file.display().to_string()));
        let report =
            import_export::import(graph, &principal, lines, (format, source), &print_progress)
                .await?;
        for (line, error) in &report.errors {
            warnings.push(format!(
                "{name}:{line}: skipped: {}",
                one_line(&error.to_string())
            ));
            errors.push(json!({ "file": name, "line": line, "why": error.to_string() }));
        }
        let unlisted = report.skipped - report.errors.len();
        if unlisted > 0 {
            warnings.push(format!("{name}: {unlisted} more lines were skipped"));
        }
        total.facts += report.facts;
        total.known += report.known;
        total.skipped += report.skipped;
    }
    let ImportReport {
        facts,
        known,
        skipped,
        ..
    } = total;
    let plain =
        format!("{facts} facts imported, {known} already known, {skipped} lines skipped.\n");
    let json = json!({ "facts": facts, "known": known, "skipped": skipped, "mistakes": errors });
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
    context: &CommandContext,
    file: &Path,
) -> Result<(Box<dyn BufRead + Send>, FactSource), CliError> {
    if file == Path::new("-") {
        return Ok((
            Box::new(BufReader::new(std::io::stdin())),
            FactSource::Import("-".to_owned()),
        ));
    }
    let usage_error = |error| CliError::usage(format!("{}: {error}", file.display()));
    let path = context
        .environment
        .working_folder
        .join(file)
        .canonicalize()
        .map_err(usage_error)?;
    let opened = File::open(&path).map_err(usage_error)?;
    if path.is_dir() {
        return Err(CliError::usage(format!(
            "{} is a folder; expected a file",
            file.display()
        )));
    }
    let source = FactSource::Import(path.to_string_lossy().into_owned());
    Ok((Box::new(BufReader::with_capacity(1 << 18, opened)), source))
}

/// Prints the number of imported facts, if stderr is a terminal.
fn print_progress(progress: ImportProgress) {
    if std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "\r{} facts", progress.facts)
            .and_then(|()| std::io::stderr().flush());
    }
}

pub async fn export(
    context: &CommandContext,
    graph: &Graph,
    file: Option<PathBuf>,
    format: Option<FactFormat>,
) -> Result<CommandOutput, CliError> {
    let snapshot = graph.snapshot(&Principal::local()).await?;
    let by_name = file.as_deref().and_then(FactFileFormat::from_path);
    let format = format
        .map(to_file_format)
        .or(by_name)
        .unwrap_or(FactFileFormat::Tsv);
    let now = AsOf::At(graph.now());
    let Some(file) = file else {
        let mut text = Vec::new();
        import_export::export(&snapshot, format, now, &mut text)
            .map_err(|error| CliError::store(error.to_string()))?;
        let total = snapshot.query(FactPattern::default(), AsOf::AnyTime, usize::MAX);
        let json = facts_json(
            &snapshot,
            &FactHits {
                facts: total.facts,
                has_more: false,
            },
        );
        return Ok(CommandOutput::new(
            String::from_utf8_lossy(&text).into_owned(),
            json,
        ));
    };
    let path = context.environment.working_folder.join(&file);
    let usage_error = |error| CliError::usage(format!("{}: {error}", file.display()));
    let mut out = BufWriter::new(File::create_new(&path).map_err(usage_error)?);
    let facts = import_export::export(&snapshot, format, now, &mut out).map_err(usage_error)?;
    out.flush().map_err(usage_error)?;
    Ok(CommandOutput::new(
        format!("{facts} facts written.\n"),
        json!({ "facts": facts }),
    ))
}
