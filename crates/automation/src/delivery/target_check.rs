//! Checks targets when work is created, while the user is there to correct them.

use std::collections::BTreeMap;

use lango_net::AddressPolicy;
use lango_tools::files::Workspace;

use super::desktop::DesktopChannel;
use super::email::MailChannel;
use super::settings::DeliverySettings;
use super::target::DeliveryTarget;
use super::webhook;

/// Checks that targets can work on this machine, without sending anything.
#[derive(Clone)]
pub struct TargetCheck {
    pub settings: DeliverySettings,
    pub address_policy: AddressPolicy,
    /// Paths of files are not checked without it.
    pub workspace: Option<Workspace>,
    /// The environment, in which `notify-send` is looked for.
    pub variables: BTreeMap<String, String>,
}

impl TargetCheck {
    /// Returns the reason why nothing can be delivered to the target.
    pub fn check(&self, target: &DeliveryTarget) -> Result<(), String> {
        match target {
            DeliveryTarget::Inbox | DeliveryTarget::Session(_) | DeliveryTarget::Command(_) => {
                Ok(())
            }
            DeliveryTarget::File(path) => match &self.workspace {
                Some(workspace) => workspace
                    .check_append(path)
                    .map_err(|error| error.to_string()),
                None => Ok(()),
            },
            DeliveryTarget::Webhook(url) => {
                webhook::check(&self.settings.webhook, self.address_policy, url)
            }
            DeliveryTarget::Notify => DesktopChannel::from_variables(&self.variables)
                .program()
                .map(drop),
            DeliveryTarget::Email(_) => MailChannel::new(&self.settings.smtp)
                .map(drop)
                .map_err(|error| error.to_string()),
        }
    }
}
