//! Deliveries: each kind of target against real receivers on this machine, and the outbox.

mod command;
mod desktop;
mod email;
mod file;
mod outbox;
mod session;
mod smtp_server;
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lango_automation::delivery::{
    CommandChannel, DeliveryChannels, DeliverySettings, DesktopChannel, MailChannel,
    OutgoingMessage, SendError, SentMessage, SessionChannel, SmtpSettings, TargetCheck,
    WebhookChannel, WebhookSettings,
};
use lango_domain::Label;
use lango_domain::automation::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryOccasion, DeliveryState,
};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_engine::InMemorySessionStore;
use lango_net::AddressPolicy;
use lango_tools::files::{UndoStorage, Workspace};
use lango_tools::shell::{ExecSettings, ShellParts};
use tempfile::TempDir;

/// The secret of webhooks, and the password of the mail server.
pub const SECRET: &str = "s3cret-of-sixteen-or-more";

/// The channels of a test, with a workspace and a home folder of its own.
pub struct DeliveryHarness {
    pub folder: TempDir,
    pub sessions: Arc<InMemorySessionStore>,
    pub smtp: SmtpSettings,
    pub exec: ExecSettings,
    pub policy: AddressPolicy,
    pub webhook_timeout: Duration,
    /// Folders in which programs are found.
    pub path: String,
}

impl DeliveryHarness {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["work", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            sessions: Arc::default(),
            smtp: SmtpSettings::default(),
            exec: ExecSettings::default(),
            policy: AddressPolicy::Anywhere,
            webhook_timeout: Duration::from_secs(20),
            path: std::env::var("PATH").unwrap_or_default(),
        }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    pub fn channels(&self) -> DeliveryChannels {
        let workspace = Workspace::open(&self.at("work"), Vec::new()).unwrap();
        let variables = BTreeMap::from([
            ("PATH".to_owned(), self.path.clone()),
            ("HOME".to_owned(), self.at("home").display().to_string()),
        ]);
        let webhook = WebhookSettings {
            secret: Some(Secret::new(SECRET)),
        };
        DeliveryChannels {
            sessions: SessionChannel::new(self.sessions.clone(), |_, _| {}),
            commands: CommandChannel::new(ShellParts {
                workspace: workspace.clone(),
                journal: UndoStorage::in_folder(None).journal,
                settings: self.exec.clone(),
                read: Vec::new(),
                hidden: Vec::new(),
                helper: PathBuf::from(env!("CARGO_BIN_EXE_delivery-sandbox")),
                variables: variables.clone(),
                data: None,
                max_duration: Duration::from_secs(100),
            }),
            workspace,
            webhooks: WebhookChannel::with_timeout(&webhook, self.policy, self.webhook_timeout),
            desktop: DesktopChannel::from_variables(&variables),
            mail: MailChannel::new(&self.smtp),
            folders: None,
        }
    }

    /// Sends one message, as the first attempt.
    pub async fn send(&self, target: &str, text: &str) -> Result<SentMessage, SendError> {
        send(&self.channels(), &delivery(target, "Title", text)).await
    }
}

pub async fn send(
    channels: &DeliveryChannels,
    delivery: &Delivery,
) -> Result<SentMessage, SendError> {
    let target = delivery.target.parse().unwrap();
    let message = OutgoingMessage {
        delivery,
        sent_at: Timestamp::from_second(1_800_000_060).unwrap(),
    };
    channels.sender(&target)?.send(message).await
}

pub fn delivery(target: &str, title: &str, text: &str) -> Delivery {
    Delivery {
        id: DeliveryId::new(7),
        run: None,
        principal: Principal::local(),
        occasion: DeliveryOccasion::Result,
        target: target.to_owned(),
        message: DeliveryMessage {
            from: "morning".to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            session: None,
            label: Label::default(),
            workspace: None,
        },
        state: DeliveryState::Pending,
        attempts: 1,
        created: Timestamp::from_second(1_800_000_000).unwrap(),
        next_try: Timestamp::from_second(1_800_000_000).unwrap(),
        last_error: None,
    }
}

#[tokio::test]
async fn targets_are_checked_before_they_are_used() {
    let harness = DeliveryHarness::new();
    let check = TargetCheck {
        settings: DeliverySettings {
            webhook: WebhookSettings {
                secret: Some(Secret::new("0123456789abcdef")),
            },
            ..DeliverySettings::default()
        },
        address_policy: AddressPolicy::Public,
        workspace: Some(harness.channels().workspace),
        variables: [("PATH".to_owned(), "/nowhere".to_owned())].into(),
    };
    for (target, expected) in [
        ("inbox", None),
        ("session:daily", None),
        ("file:notes/log.txt", None),
        ("command:cat", None),
        ("webhook:https://example.com/x", None),
        ("webhook:https://10.0.0.1/x", Some("private network")),
        ("file:.git/hooks/post-commit", Some("unattended")),
        ("file:/etc/passwd", Some("workspace")),
        ("notify", Some("not installed")),
        ("email:ann@example.com", Some("no mail server is set")),
    ] {
        let checked = check.check(&target.parse().unwrap());
        match expected {
            None => assert_eq!(checked, Ok(()), "{target}"),
            Some(reason) => {
                assert!(checked.unwrap_err().contains(reason), "{target}");
            }
        }
    }
    for secret in [None, Some(Secret::new("short"))] {
        let settings = DeliverySettings {
            webhook: WebhookSettings { secret },
            ..DeliverySettings::default()
        };
        let check = TargetCheck {
            settings,
            ..check.clone()
        };
        let target = "webhook:https://example.com/x".parse().unwrap();
        let reason = check.check(&target).unwrap_err();
        assert!(reason.contains("automation.webhook.secret"), "{reason}");
    }
}
