//! Arguments of `lango browser`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum BrowserCommand {
    /// Open a page and print its outline, as agents see it.
    Open {
        /// The address of the page.
        url: String,
        /// Show the window of the browser.
        #[arg(long)]
        headful: bool,
        /// Keep cookies under this name.
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Save a picture of a page.
    Screenshot {
        /// The address of the page.
        url: String,
        /// The file to write; the name decides between png and webp.
        #[arg(short, long, value_name = "FILE", default_value = "screenshot.png")]
        output: PathBuf,
        /// The whole page instead of the part that fits a window.
        #[arg(long)]
        full_page: bool,
        /// Show the window of the browser.
        #[arg(long)]
        headful: bool,
        /// Keep cookies under this name.
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Profiles with kept cookies: list, remove.
    #[command(subcommand)]
    Profile(BrowserProfileCommand),
}

#[derive(Subcommand)]
pub enum BrowserProfileCommand {
    /// List the profiles.
    List,
    /// Remove a profile with its cookies.
    Remove {
        /// The name of the profile.
        name: String,
    },
}
