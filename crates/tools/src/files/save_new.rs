//! Saves a new file for another tool, such as a download of the browser.

use std::path::Path;

use lango_domain::{ToolContext, ToolError};

use super::FileTools;
use super::change::{FileChange, PriorContent};
use super::text::display_path;

/// Most names that are tried for one file.
const MAX_NAMES: usize = 1_000;

impl FileTools {
    /// Writes a new file and returns its path. If the name is taken, a number is added: no file is
    /// overwritten. `lango undo` removes it.
    pub fn save_new(
        &self,
        context: &ToolContext,
        path: &str,
        bytes: Vec<u8>,
    ) -> Result<String, ToolError> {
        let _lock = self.workspace.write_lock();
        for number in 1..=MAX_NAMES {
            let path = numbered(path, number);
            let target = FileChange::write_target(&self.workspace, &path)?;
            if target.existing.is_some() {
                continue;
            }
            let change = FileChange {
                requested: target.requested,
                relative: target.relative,
                before: PriorContent::Nothing,
                after: bytes,
            };
            change.apply(self, context)?;
            return Ok(display_path(&change.relative));
        }
        Err(ToolError(format!(
            "there are too many files named `{path}`"
        )))
    }
}

/// Returns `a.txt` for the first number, then `a-2.txt`.
fn numbered(path: &str, number: usize) -> String {
    if number == 1 {
        return path.to_owned();
    }
    let whole = Path::new(path);
    let extension = whole
        .extension()
        .map(|extension| extension.to_string_lossy());
    match extension {
        Some(extension) => {
            let stem = &path[..path.len() - extension.len() - 1];
            format!("{stem}-{number}.{extension}")
        }
        None => format!("{path}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_gets_a_number() {
        for (path, number, name) in [
            ("downloads/a.txt", 1, "downloads/a.txt"),
            ("downloads/a.tar.gz", 2, "downloads/a.tar-2.gz"),
            ("downloads/a", 3, "downloads/a-3"),
        ] {
            assert_eq!(numbered(path, number), name);
        }
    }
}
