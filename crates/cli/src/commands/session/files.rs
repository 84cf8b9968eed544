//! `lango session files`: the images and files of a session.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::Stores;
use lango_domain::content::Attachment;
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKeyRef;
use lango_text::sanitize::one_line;
use serde_json::json;

use super::load_events;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub async fn run(
    stores: &Stores,
    session: &SessionId,
    save: Option<&Path>,
) -> Result<CommandOutput, CliError> {
    stores.catalog.session(&Principal::local(), session).await?;
    let events = load_events(stores, session).await?;
    let (mut plain, mut items, mut seen) = (String::new(), Vec::new(), HashSet::new());
    for event in &events {
        for attachment in event.attachments() {
            if !seen.insert((&attachment.blob, &attachment.name)) {
                continue;
            }
            let bytes = load(stores, session, attachment).await?;
            let is_lost = bytes.is_none();
            let saved = match save.zip(bytes) {
                Some((folder, bytes)) => Some(save_attachment(attachment, &bytes, folder)?),
                None => None,
            };
            let shown = saved.as_ref().map_or_else(
                || attachment.name.clone(),
                |file| file.display().to_string(),
            );
            let lost = if is_lost { ", its content is lost" } else { "" };
            let about = format!(
                "{}, {} bytes, {}{lost}",
                attachment.media_type, attachment.size, event.author
            );
            let _ = writeln!(
                plain,
                "{} {}",
                styled(NAME, one_line(&shown)),
                styled(DIM, about)
            );
            items.push(json!({
                "blob": attachment.blob, "name": attachment.name, "media_type": attachment.media_type,
                "size": attachment.size, "seq": event.seq, "author": event.author, "saved": saved, "lost": is_lost,
            }));
        }
    }
    if items.is_empty() {
        plain.push_str("The session has no files.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

/// Returns the bytes, or `None` if they are lost.
async fn load(
    stores: &Stores,
    session: &SessionId,
    attachment: &Attachment,
) -> Result<Option<Arc<[u8]>>, CliError> {
    let key = SessionKeyRef {
        session,
        principal: &Principal::local(),
    };
    Ok(stores.blobs.blob(key, &attachment.blob).await?)
}

/// Writes the bytes to a new file in the folder.
fn save_attachment(
    attachment: &Attachment,
    bytes: &[u8],
    folder: &Path,
) -> Result<PathBuf, CliError> {
    let failed = |error: std::io::Error| {
        CliError::usage(format!("cannot save to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    for number in 0..1_000 {
        let file = folder.join(numbered_name(&attachment.name, number));
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut opened) => {
                opened.write_all(bytes).map_err(failed)?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(CliError::usage(format!(
        "{} has too many files named {}",
        folder.display(),
        attachment.name
    )))
}

/// Returns `photo.png`, `photo-1.png`, and so on. An attachment's name is always a plain file name.
fn numbered_name(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (0, _) => name.to_owned(),
        (_, Some((stem, extension))) => format!("{stem}-{number}.{extension}"),
        (_, None) => format!("{name}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_numbers_before_the_extension() {
        assert_eq!(numbered_name("a.png", 0), "a.png");
        assert_eq!(numbered_name("a.png", 2), "a-2.png");
        assert_eq!(numbered_name("a", 1), "a-1");
    }
}
