//! A progress bar for ingestion.

use std::io::{IsTerminal, Write as _};

use lango_app::capability::documents::document_index::IngestProgress;

const WIDTH: usize = 30;

/// Prints the progress bar, if stderr is a terminal.
pub fn print_progress(progress: IngestProgress) {
    if std::io::stderr().is_terminal() {
        let end = if progress.done == progress.total {
            "\n"
        } else {
            ""
        };
        let _ = write!(anstream::stderr(), "\r{}{end}", format_bar(progress))
            .and_then(|()| std::io::stderr().flush());
    }
}

fn format_bar(IngestProgress { done, total }: IngestProgress) -> String {
    let full = (WIDTH * done)
        .checked_div(total)
        .unwrap_or(WIDTH)
        .min(WIDTH);
    format!(
        "[{}{}] {done} of {total} files",
        "#".repeat(full),
        " ".repeat(WIDTH - full)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_fills_with_progress() {
        let at = |done, total| format_bar(IngestProgress { done, total });
        assert!(at(0, 7).starts_with(&format!("[{}] 0 of 7", " ".repeat(WIDTH))));
        assert_eq!(at(1, 2).matches('#').count(), WIDTH / 2);
        assert_eq!(
            (at(7, 7).matches('#').count(), at(0, 0).matches('#').count()),
            (WIDTH, WIDTH)
        );
    }
}
