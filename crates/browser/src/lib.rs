//! A browser for agents: outlines of pages, actions on elements, screenshots.
//!
//! The browser is an installed Chromium that Lango starts on first use and drives over a pipe. All of
//! its traffic goes through a proxy that checks every address (B141). Pages are untrusted.

mod browser;
mod cdp;
mod credentials;
mod downloads;
mod error;
mod launch;
mod locate;
mod navigator;
mod page;
mod profiles;
mod refs;
mod session_pages;
mod settings;
mod tab_state;
mod tools;

pub use browser::BrowserOptions;
pub use error::BrowserError;
pub use locate::{INSTALL_HINT, InstalledBrowser, find_browser};
pub use navigator::{
    FileReader, FileSaver, Navigator, NavigatorParts, NavigatorStorage, PdfTextReader,
};
pub use page::screenshot::ScreenshotOptions;
pub use profiles::{ProfileName, ProfileStore, StoredProfile};
pub use settings::BrowserSettings;
pub use tools::tools;
