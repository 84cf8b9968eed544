//! `lango session files`: the images and files of a session.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use lango_domain::Stores;
use lango_domain::content::Attachment;
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKeyRef;
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
            if !seen.insert(&attachment.blob) {
                continue;
            }
            let saved = match save {
                Some(folder) => save_attachment(stores, session, attachment, folder).await?,
                None => None,
            };
            let shown = saved.as_ref().map_or_else(
                || attachment.name.clone(),
                |file| file.display().to_string(),
            );
            let about = format!(
                "{}, {} bytes, {}",
                attachment.media_type, attachment.size, event.author
            );
            let _ = writeln!(plain, "{} {}", styled(NAME, shown), styled(DIM, about));
            items.push(json!({
                "blob": attachment.blob, "name": attachment.name, "media_type": attachment.media_type,
                "size": attachment.size, "seq": event.seq, "author": event.author, "saved": saved,
            }));
        }
    }
    if items.is_empty() {
        plain.push_str("The session has no files.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

/// Writes the bytes to a new file in the folder. Returns `None` if they are lost.
async fn save_attachment(
    stores: &Stores,
    session: &SessionId,
    attachment: &Attachment,
    folder: &Path,
) -> Result<Option<PathBuf>, CliError> {
    let key = SessionKeyRef {
        session,
        principal: &Principal::local(),
    };
    let Some(bytes) = stores.blobs.blob(key, &attachment.blob).await? else {
        return Ok(None);
    };
    let failed = |error: std::io::Error| {
        CliError::usage(format!("cannot save to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    for number in 0.. {
        let file = folder.join(numbered_name(&attachment.name, number));
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut opened) => {
                opened.write_all(&bytes).map_err(failed)?;
                return Ok(Some(file));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1_000 => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

/// Returns `photo.png`, `photo-1.png`, and so on. A name never begins with a dot.
fn numbered_name(name: &str, number: usize) -> String {
    let name = match name.trim_start_matches('.') {
        "" => "attachment",
        name => name,
    };
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
        assert_eq!(numbered_name("..bashrc", 0), "bashrc");
        assert_eq!(numbered_name("...", 1), "attachment-1");
    }
}
