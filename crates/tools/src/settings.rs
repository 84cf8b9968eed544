//! The `tools` section of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shell;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolsSettings {
    /// The folder that the file tools and commands work in (`--workspace`); the current folder by default. A home folder or `/`
    /// is used only if it is set here.
    pub workspace: Option<PathBuf>,
    /// Settings for commands.
    pub exec: shell::ExecSettings,
    /// The browser's tools.
    pub browser: BrowserToolSettings,
}

/// `tools.browser`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BrowserToolSettings {
    /// Gives the navigator a browser: `auto` if one is installed, true or false.
    pub enabled: BrowserChoice,
}

/// The value of `tools.browser.enabled`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "BrowserChoiceValue", into = "BrowserChoiceValue")]
#[schemars(with = "BrowserChoiceValue")]
pub enum BrowserChoice {
    #[default]
    Auto,
    On,
    Off,
}

/// `auto`, true or false, as settings write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected auto, true or false")]
enum BrowserChoiceValue {
    Automatic(AutoWord),
    Fixed(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AutoWord {
    Auto,
}

impl From<BrowserChoiceValue> for BrowserChoice {
    fn from(value: BrowserChoiceValue) -> Self {
        match value {
            BrowserChoiceValue::Automatic(AutoWord::Auto) => Self::Auto,
            BrowserChoiceValue::Fixed(true) => Self::On,
            BrowserChoiceValue::Fixed(false) => Self::Off,
        }
    }
}

impl From<BrowserChoice> for BrowserChoiceValue {
    fn from(choice: BrowserChoice) -> Self {
        match choice {
            BrowserChoice::Auto => Self::Automatic(AutoWord::Auto),
            BrowserChoice::On => Self::Fixed(true),
            BrowserChoice::Off => Self::Fixed(false),
        }
    }
}
