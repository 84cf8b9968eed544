//! The actions `upload` and `download`.

use lango_domain::{Intent, Safety, ToolContext, ToolError, ToolOutput};
use url::Url;

use super::action::{ActionArgs, target};
use super::page_output;
use crate::downloads::{
    DOWNLOAD_FOLDER, MAX_DOWNLOAD_BYTES, ReceivedFile, describe_file, readable_size,
};
use crate::error::{BrowserError, Result};
use crate::navigator::{NAVIGATION_LIMIT, Navigator};
use crate::page::Page;
use crate::page::input::Click;
use crate::refs::ElementRef;
use crate::session_pages::SessionPages;
use crate::tab_state::{ApprovedDownload, Download};

pub(super) async fn upload(
    navigator: &Navigator,
    page: &Page,
    element: Option<ElementRef>,
    args: &ActionArgs,
) -> Result<()> {
    let path = args.text.as_deref();
    let path = path.ok_or_else(|| {
        BrowserError::action("the action upload needs the path of a file in text")
    })?;
    let (name, bytes) = (navigator.parts.read_file)(path).map_err(BrowserError::Action)?;
    // The browser gets a copy, so that it needs no access to the workspace.
    let folder = tempfile::tempdir_in(&page.browser.uploads);
    let written = folder.and_then(|folder| {
        let file = folder.keep().join(name);
        std::fs::write(&file, bytes).map(|()| file)
    });
    let file =
        written.map_err(|error| BrowserError::action(format!("cannot copy the file: {error}")))?;
    page.set_files(element, &[file]).await
}

/// The file that a call means.
enum WantedFile {
    Offered(Download),
    At(Url),
}

impl WantedFile {
    /// Finds the file: the one at an address, the offered one with a name, or the one that was offered last.
    fn find(navigator: &Navigator, session: &SessionPages, args: &ActionArgs) -> Result<Self> {
        let text = args.text.as_deref().map(str::trim);
        let text = text.filter(|text| !text.is_empty());
        if let Some(offer) = session.last_offer(text) {
            return Ok(Self::Offered(offer));
        }
        match text {
            Some(text) if text.contains("://") => navigator
                .check_address(text, &session.typed_addresses)
                .map(Self::At),
            Some(name) => Err(BrowserError::action(format!(
                "no file named {name} was offered; give the address of a file"
            ))),
            None => Err(BrowserError::action(
                "no file was offered; click what offers it, or give its address in text",
            )),
        }
    }

    fn approved(&self) -> ApprovedDownload {
        match self {
            Self::Offered(offer) => ApprovedDownload {
                origin: crate::tab_state::origin_of(&offer.url),
                name: Some(offer.name.clone()),
            },
            Self::At(url) => ApprovedDownload {
                origin: url.origin().ascii_serialization(),
                name: None,
            },
        }
    }
}

/// Describes the saving of a file. Each one is asked about.
pub(super) fn download_intent(
    navigator: &Navigator,
    session: &SessionPages,
    args: &ActionArgs,
) -> Result<Intent> {
    check_saving(navigator)?;
    let limit = MAX_DOWNLOAD_BYTES / 1024 / 1024;
    let wanted = WantedFile::find(navigator, session, args)?;
    let (shows, subject) = match &wanted {
        WantedFile::Offered(offer) => {
            if offer.bytes.is_some_and(|bytes| bytes > MAX_DOWNLOAD_BYTES) {
                let message = format!("{} is larger than {limit} MiB", describe_file(offer));
                return Err(BrowserError::Action(message));
            }
            (describe_file(offer), offer.url.clone())
        }
        WantedFile::At(url) => (format!("at {url}, up to {limit} MiB"), url.to_string()),
    };
    Ok(Intent {
        level: Safety::Dangerous,
        shows: format!("saves the file {shows}\nin the folder {DOWNLOAD_FOLDER} of the workspace"),
        subject: format!("download {subject}"),
        pattern: None,
    })
}

fn check_saving(navigator: &Navigator) -> Result<()> {
    match navigator.storage.save_file {
        Some(_) => Ok(()),
        None => Err(BrowserError::action("files cannot be saved here")),
    }
}

/// Saves a file of a page in the workspace.
pub(super) async fn download(
    navigator: &Navigator,
    context: &ToolContext,
    session: &mut SessionPages,
    args: &ActionArgs,
) -> std::result::Result<ToolOutput, ToolError> {
    check_saving(navigator)?;
    let wanted = WantedFile::find(navigator, session, args)?;
    let page = session.page_or_new(navigator).await?;
    page.check_usable()?;
    let file = receive(session, &page, &wanted, args).await?;
    let text = save(navigator, context, file).await?;
    Ok(page_output(&page, text))
}

async fn receive(
    session: &SessionPages,
    page: &Page,
    wanted: &WantedFile,
    args: &ActionArgs,
) -> Result<ReceivedFile> {
    let approved = wanted.approved();
    match wanted {
        WantedFile::Offered(offer) if offer.is_form_response || args.r#ref.is_some() => {
            let element = target(page, args).await?.ok_or_else(|| {
                let message =
                    "the file is the response to a form: name the control that sends it in ref";
                BrowserError::action(message)
            })?;
            let step = page.click(Click::left(element));
            session.receive_file(approved, step).await
        }
        WantedFile::Offered(offer) => {
            let step = page.start_download(&offer.url, &offer.name);
            session.receive_file(approved, step).await
        }
        WantedFile::At(url) => {
            let step = async {
                match page.navigate(url, NAVIGATION_LIMIT).await? {
                    true => Ok(()),
                    // The browser shows it. The page that shows it can ask for it as a file.
                    false => page.start_download(url.as_str(), "").await,
                }
            };
            session.receive_file(approved, step).await
        }
    }
}

async fn save(navigator: &Navigator, context: &ToolContext, file: ReceivedFile) -> Result<String> {
    let missing = || BrowserError::action("files cannot be saved here");
    let save = navigator.storage.save_file.clone().ok_or_else(missing)?;
    let (context, size) = (context.clone(), readable_size(file.bytes.len() as u64));
    let wanted = format!("{DOWNLOAD_FOLDER}/{}", file.name);
    let write = move || save(&context, &wanted, file.bytes);
    let path = tokio::task::spawn_blocking(write).await;
    let path = path.map_err(|_panic| BrowserError::action("the file cannot be saved"))?;
    let path = path.map_err(BrowserError::Action)?;
    Ok(format!(
        "saved {path} ({size}) from {}; its content is untrusted\n",
        file.origin
    ))
}
