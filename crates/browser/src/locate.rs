//! Finds an installed browser.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::BrowserError;
use crate::settings::BrowserSettings;

/// Programs without a wrapper script come first: a script may add flags of its own.
const HEADLESS_PROGRAMS: [&str; 3] = [
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
];
const WINDOWED_PROGRAMS: [&str; 12] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "chromium",
    "chromium-browser",
    "/opt/google/chrome/chrome",
    "google-chrome",
    "google-chrome-stable",
    "/opt/microsoft/msedge/msedge",
    "microsoft-edge",
    "microsoft-edge-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// The advice for people without a browser.
pub const INSTALL_HINT: &str =
    "install one, for example with `apt install chromium-headless-shell`, or set browser.path";

/// An installed browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledBrowser {
    pub path: PathBuf,
    /// True for a program that has no windows and needs no `--headless`.
    pub is_headless_shell: bool,
}

/// Finds the browser of the settings. `search_path` is the value of `PATH`.
pub fn find_browser(
    settings: &BrowserSettings,
    search_path: Option<&OsStr>,
) -> Result<InstalledBrowser, BrowserError> {
    if let Some(path) = &settings.path {
        if !path.is_file() {
            let message = format!("browser.path: {} is not a file", path.display());
            return Err(BrowserError::Unavailable(message));
        }
        return Ok(installed(path.clone()));
    }
    // Without a search path nothing is searched, so that a bare environment has no browser.
    let headless = settings.headless.then_some(HEADLESS_PROGRAMS);
    let names = headless.iter().flatten().chain(&WINDOWED_PROGRAMS);
    let found = names
        .filter_map(|name| find_program(name, search_path))
        .next();
    found.map(installed).ok_or_else(|| {
        let message = match settings.headless {
            true => format!("no browser was found; {INSTALL_HINT}"),
            false => "no browser with windows was found; install one, for example with `apt install chromium`, or set \
                      browser.path"
                .to_owned(),
        };
        BrowserError::Unavailable(message)
    })
}

fn installed(path: PathBuf) -> InstalledBrowser {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_headless_shell = name.contains("headless-shell") || name.contains("headless_shell");
    InstalledBrowser {
        path,
        is_headless_shell,
    }
}

fn find_program(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let search_path = search_path?;
    if Path::new(name).is_absolute() {
        return Path::new(name).is_file().then(|| PathBuf::from(name));
    }
    std::env::split_paths(search_path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_program_is_used_or_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chrome-headless-shell");
        let settings = BrowserSettings {
            path: Some(path.clone()),
            ..BrowserSettings::default()
        };
        let error = find_browser(&settings, None).unwrap_err().to_string();
        assert!(error.starts_with("browser.path:"), "{error}");
        std::fs::write(&path, "").unwrap();
        let found = find_browser(&settings, None).unwrap();
        assert!(found.path == path && found.is_headless_shell);
    }
}
