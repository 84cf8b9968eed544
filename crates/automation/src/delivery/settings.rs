//! The settings of deliveries: `automation.smtp` and `automation.webhook`.

use std::num::NonZeroU16;

use lango_domain::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of `automation` that deliveries use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeliverySettings {
    /// The mail server for deliveries by e-mail.
    pub smtp: SmtpSettings,
    /// Deliveries to webhooks.
    pub webhook: WebhookSettings,
}

/// `automation.smtp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SmtpSettings {
    /// The host name of the mail server; empty if there is none.
    pub host: String,
    /// The port; 587 for `starttls`, 465 for `implicit` and 25 for `none` if it is not set.
    pub port: Option<NonZeroU16>,
    /// The encryption of the connection.
    pub tls: SmtpTls,
    /// The user name; empty for a server without authentication.
    pub user: String,
    /// The password of the user.
    pub password: Option<Secret>,
    /// The sender, such as `lango@example.com` or `Lango <lango@example.com>`.
    pub from: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmtpTls {
    /// The connection is encrypted before anything is sent; a server that cannot is refused.
    #[default]
    Starttls,
    /// The connection is encrypted from the start.
    Implicit,
    /// No encryption. A password is only sent to this machine.
    None,
}

impl SmtpTls {
    /// Returns the port that servers use by default.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

/// `automation.webhook`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookSettings {
    /// The secret that signs every webhook request, at least 16 characters. Without it, nothing is sent.
    pub secret: Option<Secret>,
}
