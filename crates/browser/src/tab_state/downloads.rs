//! Files that pages offer. They are refused, unless the user approved the next one of a context.

use serde_json::{Value, json};

use super::{EventReaction, TabRegistry, text};
use crate::downloads::{MAX_DOWNLOAD_BYTES, safe_file_name};

/// Most files of one context that are remembered. A page can offer any number.
const MAX_REMEMBERED: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadState {
    Running,
    Completed,
    /// Refused, canceled or broken off.
    Ended,
    TooLarge,
}

/// A file that a page offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The protocol's id, which is also the name of the file that the browser writes.
    pub id: String,
    /// The isolated context in which it was offered.
    pub context: String,
    pub url: String,
    /// A name without path parts.
    pub name: String,
    /// The type that the server named, if the file was requested as a page.
    pub media_type: Option<String>,
    pub bytes: Option<u64>,
    /// True if the file is the response to a form, which its address alone does not repeat.
    pub is_form_response: bool,
    pub state: DownloadState,
    /// True if the user approved it.
    pub is_approved: bool,
    /// True once the agent has been told.
    pub is_told: bool,
}

/// The file that the user approved, before it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedDownload {
    pub origin: String,
    /// The name that the user saw, if it was known.
    pub name: Option<String>,
}

impl ApprovedDownload {
    fn covers(&self, download: &Download) -> bool {
        let has_name = self.name.as_ref().is_none_or(|name| *name == download.name);
        has_name && self.origin == origin_of(&download.url)
    }
}

/// Returns the origin of an address. That of a `blob:` address is in its path.
pub fn origin_of(url: &str) -> String {
    url::Url::parse(url).map_or_else(
        |_| "an unknown address".to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

impl TabRegistry {
    pub(super) fn begin_download(&mut self, params: &Value) -> Vec<EventReaction> {
        let frame = text(params, "frameId");
        let mut tabs = self.tabs.values_mut();
        let Some(tab) = tabs.find(|tab| tab.frames.contains_key(frame)) else {
            return Vec::new();
        };
        tab.stop_navigating();
        let url = text(params, "url");
        let response = tab
            .frames
            .get(frame)
            .and_then(|frame| frame.response.as_ref());
        let response = response.filter(|response| response.url == url);
        let mut download = Download {
            id: text(params, "guid").to_owned(),
            context: tab.context.clone(),
            url: url.to_owned(),
            name: safe_file_name(text(params, "suggestedFilename")),
            media_type: response.map(|response| response.media_type.clone()),
            bytes: None,
            is_form_response: response.is_some_and(|response| response.is_form_response),
            state: DownloadState::Running,
            is_approved: false,
            is_told: false,
        };
        let context = download.context.clone();
        let approved = self.approved_downloads.get(&context);
        download.is_approved = approved.is_some_and(|approved| approved.covers(&download));
        let reaction = match download.is_approved {
            true => {
                self.approved_downloads.remove(&context);
                Vec::new()
            }
            // Without an approval the context refuses it anyway.
            false => vec![cancel(&download)],
        };
        let of_context = |download: &Download| download.context == context;
        if self.downloads.iter().filter(|one| of_context(one)).count() >= MAX_REMEMBERED
            && let Some(oldest) = self.downloads.iter().position(of_context)
        {
            self.downloads.remove(oldest);
        }
        self.downloads.push(download);
        reaction
    }

    pub(super) fn update_download(&mut self, params: &Value) -> Vec<EventReaction> {
        let id = text(params, "guid");
        let mut downloads = self.downloads.iter_mut();
        let Some(download) = downloads.find(|download| download.id == id) else {
            return Vec::new();
        };
        let number = |name: &str| params[name].as_f64().unwrap_or_default() as u64;
        let (total, received) = (number("totalBytes"), number("receivedBytes"));
        if total > 0 {
            download.bytes = Some(total);
        }
        let is_over = download.is_approved && total.max(received) > MAX_DOWNLOAD_BYTES;
        match text(params, "state") {
            "completed" if !is_over => {
                download.bytes = Some(received);
                download.state = DownloadState::Completed;
            }
            _ if is_over && download.state != DownloadState::TooLarge => {
                download.state = DownloadState::TooLarge;
                return vec![cancel(download)];
            }
            "canceled" if download.state == DownloadState::Running => {
                download.state = DownloadState::Ended;
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns the files of a context, oldest first.
    pub fn downloads_of(&self, context: &str) -> impl Iterator<Item = &Download> {
        let context = context.to_owned();
        let downloads = self.downloads.iter();
        downloads.filter(move |download| download.context == context)
    }

    pub fn forget_download(&mut self, id: &str) {
        self.downloads.retain(|download| download.id != id);
    }

    /// Returns true while a file is being refused: its size is not known yet.
    pub fn is_refusing(&self, context: &str) -> bool {
        let mut downloads = self.downloads_of(context);
        downloads.any(|download| !download.is_approved && download.state == DownloadState::Running)
    }

    /// Returns the refused files of a context that the agent has not been told about.
    pub fn take_new_offers(&mut self, context: &str) -> Vec<Download> {
        let mut offers = Vec::new();
        for download in &mut self.downloads {
            let is_new = download.context == context && !download.is_told && !download.is_approved;
            if is_new && download.state != DownloadState::Running {
                download.is_told = true;
                offers.push(download.clone());
            }
        }
        offers
    }
}

fn cancel(download: &Download) -> EventReaction {
    let params = json!({ "guid": download.id, "browserContextId": download.context });
    EventReaction::new(None, "Browser.cancelDownload", params)
}
