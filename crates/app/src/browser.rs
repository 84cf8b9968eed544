//! Assembles the navigator and its tools.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use lango_browser::{
    BrowserOptions, FileReader, INSTALL_HINT, Navigator, NavigatorParts, NavigatorStorage,
    ProfileStore, find_browser,
};
use lango_documents::DocumentAccess;
use lango_documents::parse::pdf_text;
use lango_domain::Tool;
use lango_net::AddressPolicy;
use lango_tools::BrowserChoice;

use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::doctor::{CheckStatus, DoctorCheck};
use crate::environment::Environment;

/// Most bytes of a file that is given to a page.
const MAX_UPLOAD_BYTES: u64 = 50 * 1024 * 1024;

/// Returns the browser's tools, if it is enabled (S85).
pub(crate) fn browser_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    let (loaded, environment) = (context.loaded, context.environment);
    let is_enabled = match loaded.settings.tools.browser.enabled {
        BrowserChoice::Off => false,
        // A missing browser is reported by the first call.
        BrowserChoice::On => true,
        BrowserChoice::Auto => options(loaded, environment).find_browser().is_ok(),
    };
    if !is_enabled {
        return Ok(Vec::new());
    }
    let navigator = context.toolset.navigator(|| {
        let parts = NavigatorParts {
            options: options(loaded, environment),
            read_file: workspace_reader(context.toolset.document_access()),
            read_pdf: Arc::new(|bytes| pdf_text(bytes).map_err(|error| error.to_string())),
        };
        let storage = NavigatorStorage {
            save_file: Some(context.toolset.file_saver()),
            profiles: browser_profiles(environment),
        };
        Navigator::with_storage(parts, storage)
    });
    Ok(lango_browser::tools(navigator))
}

/// Returns a navigator for a command in which the user typed the address.
pub fn navigator_for_user(
    loaded: &LoadedConfig,
    environment: &Environment,
    policy: AddressPolicy,
) -> Arc<Navigator> {
    let mut options = options(loaded, environment);
    if policy == AddressPolicy::Anywhere {
        options.policy = policy;
    }
    let parts = NavigatorParts {
        options,
        read_file: Arc::new(|_| Err("no files can be uploaded here".to_owned())),
        read_pdf: Arc::new(|bytes| pdf_text(bytes).map_err(|error| error.to_string())),
    };
    let storage = NavigatorStorage {
        save_file: None,
        profiles: browser_profiles(environment),
    };
    Navigator::with_storage(parts, storage)
}

/// Returns the store of named profiles.
pub fn browser_profiles(environment: &Environment) -> Option<ProfileStore> {
    let data = environment.data_folder()?;
    Some(ProfileStore::new(data.join("browser-profiles")))
}

fn options(loaded: &LoadedConfig, environment: &Environment) -> BrowserOptions {
    let mut settings = loaded.settings.browser.clone();
    settings.path = settings
        .path
        .map(|path| loaded.resolve(environment, "browser.path", &path));
    let variables = environment.variables.iter();
    BrowserOptions {
        settings,
        policy: loaded.settings.net.address_policy(),
        variables: variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        temp_folder: std::env::temp_dir(),
    }
}

/// Reads files of the workspace, with the limits of the file tools.
fn workspace_reader(access: Arc<dyn DocumentAccess>) -> FileReader {
    Arc::new(move |path| {
        let (file, _) = access.resolve(path).map_err(|error| error.0)?;
        let read = access.open(&file).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(MAX_UPLOAD_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let bytes = read.map_err(|error| format!("{path}: {error}"))?;
        if bytes.len() as u64 > MAX_UPLOAD_BYTES {
            return Err(format!("{path} is larger than 50 MB"));
        }
        let name = Path::new(path).file_name().unwrap_or_default();
        Ok((name.to_string_lossy().into_owned(), bytes))
    })
}

/// Reports which browser was found.
pub(crate) fn browser_checks<'a>(
    loaded: &'a LoadedConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async move {
        let choice = loaded.settings.tools.browser.enabled;
        if choice == BrowserChoice::Off {
            let detail = "disabled: the navigator has no browser";
            return vec![DoctorCheck::new("browser", CheckStatus::Pass, detail)];
        }
        let options = options(loaded, environment);
        let path = environment.get("PATH").map(AsRef::as_ref);
        let check = match find_browser(&options.settings, path) {
            Ok(found) => {
                let detail = found.path.display().to_string();
                DoctorCheck::new("browser", CheckStatus::Pass, detail)
            }
            Err(error) => {
                let status = match choice {
                    BrowserChoice::On => CheckStatus::Fail,
                    _ => CheckStatus::Warn,
                };
                DoctorCheck::new("browser", status, error.to_string()).with_hint(INSTALL_HINT)
            }
        };
        vec![check]
    })
}
