//! Files that pages offer: their names, and the way in which they arrive.

use std::time::Duration;

use lango_text::sanitize::strip_control_chars;
use serde_json::json;
use tokio::time::Instant;

use crate::browser::Browser;
use crate::error::{BrowserError, Result};
use crate::page::Page;
use crate::session_pages::SessionPages;
use crate::tab_state::{ApprovedDownload, Download, DownloadState, TabRegistry, origin_of};

/// Most bytes of a file. The tools that change files can undo changes up to this size.
pub const MAX_DOWNLOAD_BYTES: u64 = 50 * 1024 * 1024;
/// The folder of the workspace for files from pages.
pub const DOWNLOAD_FOLDER: &str = "downloads";
/// Most bytes of a file name. File systems allow little more.
const MAX_NAME_BYTES: usize = 120;
const MAX_EXTENSION_BYTES: usize = 16;

/// Time for the refusal of a file to be complete. Its size is known then.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);
/// Time for an approved file to begin.
const START_LIMIT: Duration = Duration::from_secs(15);
/// Time for an approved file to arrive.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(100);

/// A file that arrived.
pub struct ReceivedFile {
    pub name: String,
    pub origin: String,
    pub bytes: Vec<u8>,
}

/// Describes a file that was refused.
pub fn describe_offer(offer: &Download) -> String {
    format!(
        "the page offers the file {} for download; it was not saved. The action download saves it\n",
        describe_file(offer)
    )
}

/// Describes a file: name, type, size, origin.
pub fn describe_file(file: &Download) -> String {
    let kind = file.media_type.as_deref().unwrap_or("type unknown");
    let size = file
        .bytes
        .map_or_else(|| "size unknown".to_owned(), readable_size);
    format!(
        "{} ({kind}, {size}, from {})",
        file.name,
        origin_of(&file.url)
    )
}

/// The permission of a context to save one file. It ends when this is dropped, also if the call is canceled.
struct DownloadPermission<'a> {
    browser: &'a Browser,
    context: &'a str,
}

impl Drop for DownloadPermission<'_> {
    fn drop(&mut self) {
        let Self { browser, context } = self;
        let running: Vec<String> = browser.tabs.update(|tabs| {
            tabs.approved_downloads.remove(*context);
            let downloads = tabs.downloads_of(context);
            let running = downloads.filter(|one| one.state == DownloadState::Running);
            running.map(|one| one.id.clone()).collect()
        });
        for id in running {
            let params = json!({ "guid": id, "browserContextId": context });
            browser.cdp.send(None, "Browser.cancelDownload", params);
        }
        let params =
            json!({ "behavior": "deny", "browserContextId": context, "eventsEnabled": true });
        browser
            .cdp
            .send(None, "Browser.setDownloadBehavior", params);
    }
}

impl SessionPages {
    /// Returns the refused files that the agent has not been told about.
    pub async fn take_offers(&self) -> Result<Vec<Download>> {
        let place = self.place()?;
        let is_over = |tabs: &TabRegistry| (!tabs.is_refusing(&place.context)).then_some(());
        let tabs = &place.browser.tabs;
        tabs.wait(REFUSAL_LIMIT, is_over).await;
        Ok(tabs.update(|tabs| tabs.take_new_offers(&place.context)))
    }

    /// Returns a refused file that the agent has not been told about, once its refusal is complete.
    pub async fn wait_for_offer(&self) -> Result<Option<Download>> {
        let place = self.place()?;
        let is_over = |tabs: &TabRegistry| (!tabs.is_refusing(&place.context)).then_some(());
        place.browser.tabs.wait(REFUSAL_LIMIT, is_over).await;
        let tabs = place.browser.tabs.lock();
        let mut downloads = tabs.downloads_of(&place.context);
        Ok(downloads
            .find(|one| !one.is_told && !one.is_approved)
            .cloned())
    }

    /// Returns the file that was offered last, or the last one with a name.
    pub fn last_offer(&self, name: Option<&str>) -> Option<Download> {
        let place = self.place().ok()?;
        let tabs = place.browser.tabs.lock();
        let mut offers: Vec<&Download> = tabs.downloads_of(&place.context).collect();
        offers.retain(|offer| !offer.is_approved && name.is_none_or(|name| name == offer.name));
        offers.last().map(|offer| (*offer).clone())
    }

    /// Runs a step that makes the page send a file, and returns the file. Only the approved one is accepted.
    pub async fn receive_file(
        &self,
        approved: ApprovedDownload,
        step: impl Future<Output = Result<()>>,
    ) -> Result<ReceivedFile> {
        let place = self.place()?;
        let (browser, context) = (&place.browser, place.context.as_str());
        let failed = |error: std::io::Error| {
            BrowserError::action(format!("the file cannot be stored: {error}"))
        };
        // The folder is removed at the end, with what half a download left in it.
        let folder = tempfile::tempdir_in(&browser.downloads).map_err(failed)?;
        let permission = DownloadPermission { browser, context };
        let earlier: Vec<String> = browser.tabs.update(|tabs| {
            tabs.approved_downloads.insert(context.to_owned(), approved);
            let downloads = tabs.downloads_of(context);
            downloads.map(|one| one.id.clone()).collect()
        });
        browser.allow_downloads(context, folder.path()).await?;
        let start = Instant::now();
        step.await?;
        let begun = |tabs: &TabRegistry| {
            let mut downloads = tabs.downloads_of(context);
            downloads.find(|one| !earlier.contains(&one.id)).cloned()
        };
        let begun = browser.tabs.wait_until(start + START_LIMIT, begun).await;
        let begun = begun.ok_or_else(|| BrowserError::action("no file came"))?;
        if !begun.is_approved {
            return Err(BrowserError::action(format!(
                "another file came than the approved one: {}; it was not saved",
                describe_file(&begun)
            )));
        }
        let ended = |tabs: &TabRegistry| {
            let mut downloads = tabs.downloads_of(context);
            let download = downloads.find(|one| one.id == begun.id)?;
            (download.state != DownloadState::Running).then(|| download.clone())
        };
        let ended = browser.tabs.wait(ARRIVAL_LIMIT, ended).await;
        browser.tabs.update(|tabs| tabs.forget_download(&begun.id));
        let file = read_arrived(ended, &folder.path().join(&begun.id));
        drop(permission);
        file
    }
}

/// Reads a complete file, which the browser has written.
fn read_arrived(ended: Option<Download>, path: &std::path::Path) -> Result<ReceivedFile> {
    let limit = MAX_DOWNLOAD_BYTES / 1024 / 1024;
    match ended.as_ref().map(|download| download.state) {
        Some(DownloadState::Completed) => {}
        Some(DownloadState::TooLarge) => {
            let message = format!("the file is larger than {limit} MiB; it was not saved");
            return Err(BrowserError::action(message));
        }
        Some(_) => {
            return Err(BrowserError::action(
                "the transfer broke off; nothing was saved",
            ));
        }
        None => {
            let seconds = ARRIVAL_LIMIT.as_secs();
            let message = format!("the file did not arrive within {seconds} s; nothing was saved");
            return Err(BrowserError::action(message));
        }
    }
    let bytes = lango_files::read_bounded(path, MAX_DOWNLOAD_BYTES)
        .map_err(|error| BrowserError::action(format!("the file cannot be read: {error}")))?;
    let download = ended.ok_or(BrowserError::NoPage)?;
    Ok(ReceivedFile {
        origin: origin_of(&download.url),
        name: download.name,
        bytes,
    })
}

impl Page {
    /// Asks for an address as a file, in the name of the open page.
    pub async fn start_download(&self, url: &str, name: &str) -> Result<()> {
        let args = json!({ "url": url, "name": name });
        let started = self.call(&self.main_frame(), "startDownload", args).await?;
        crate::page::check(started).map(drop)
    }
}

/// Returns a file name that names no folder, is not hidden, and shows what it is.
pub fn safe_file_name(suggested: &str) -> String {
    let last = suggested.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible = strip_control_chars(last);
    let replaced: String = visible
        .chars()
        .filter(|c| !is_invisible(*c))
        .map(|c| match c {
            ':' | '*' | '?' | '"' | '<' | '>' | '|' | '\n' | '\t' | '\r' => '_',
            c => c,
        })
        .collect();
    let name = replaced.trim_matches(|c: char| c == '.' || c == '~' || c.is_whitespace());
    if name.is_empty() {
        return "file".to_owned();
    }
    shorten(name)
}

/// Returns true for characters that hide or reorder others, so that `exe` can look like `pdf`.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

fn shorten(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= MAX_EXTENSION_BYTES => (stem, extension),
        _ => (name, ""),
    };
    let end = stem.floor_char_boundary(MAX_NAME_BYTES - extension.len() - 1);
    match extension {
        "" => stem[..end].to_owned(),
        extension => format!("{}.{extension}", &stem[..end]),
    }
}

/// Returns a size for people.
pub fn readable_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_visible() {
        for (suggested, name) in [
            ("a b.zip", "a b.zip"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\evil.exe", "evil.exe"),
            (".bashrc", "bashrc"),
            ("...", "file"),
            ("", "file"),
            ("/", "file"),
            (" .. x .. ", "x"),
            ("a\u{202e}fdp.exe", "afdp.exe"),
            ("a\0b\u{1b}[2Jc.txt", "ab[2Jc.txt"),
            ("con:aux|<>.txt", "con_aux___.txt"),
            ("Übung.pdf", "Übung.pdf"),
        ] {
            assert_eq!(safe_file_name(suggested), name, "{suggested:?}");
        }
        let long = safe_file_name(&format!("{}.tar", "é".repeat(5_000)));
        assert!(
            long.len() <= MAX_NAME_BYTES && long.ends_with(".tar"),
            "{long}"
        );
        let no_extension = safe_file_name(&format!("a.{}", "x".repeat(5_000)));
        assert!(no_extension.len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn sizes_are_readable() {
        let sizes = [0, 999, 1_500, 2_500_000].map(readable_size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1.5 kB", "2.5 MB"]);
    }
}
