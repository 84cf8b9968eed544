//! Deliveries by e-mail, over SMTP.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use futures::future::{BoxFuture, FutureExt};
use lango_domain::secret::Secret;
use lango_text::sanitize::truncated_line;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::OutgoingMessage;
use super::settings::{SmtpSettings, SmtpTls};

const MAX_SUBJECT_CHARS: usize = 150;
const MAX_TEXT_BYTES: usize = 256 * 1024;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// For the whole conversation with the server.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The reason why no e-mail can be sent. The user can correct each in the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailSetupError {
    #[error("no mail server is set; set automation.smtp.host and automation.smtp.from")]
    NotSet,
    #[error("automation.smtp.from is not an e-mail address: `{0}`")]
    From(String),
    #[error("automation.smtp.user is set without automation.smtp.password")]
    NoPassword,
    #[error(
        "automation.smtp.tls=none would send the password unencrypted to {0}; use starttls or implicit"
    )]
    ClearTextPassword(String),
}

/// The mail server and the sender.
pub struct MailChannel {
    settings: SmtpSettings,
    from: Mailbox,
    timeout: Duration,
}

impl MailChannel {
    pub fn new(settings: &SmtpSettings) -> Result<Self, MailSetupError> {
        if settings.host.trim().is_empty() {
            return Err(MailSetupError::NotSet);
        }
        let from = settings
            .from
            .parse()
            .map_err(|_| MailSetupError::From(truncated_line(&settings.from, 80)))?;
        let has_user = !settings.user.is_empty();
        if has_user && settings.password.is_none() {
            return Err(MailSetupError::NoPassword);
        }
        if has_user && settings.tls == SmtpTls::None && !is_this_machine(&settings.host) {
            let host = truncated_line(&settings.host, 80);
            return Err(MailSetupError::ClearTextPassword(host));
        }
        Ok(Self {
            settings: settings.clone(),
            from,
            timeout: SEND_TIMEOUT,
        })
    }

    /// Replaces the time limit of one e-mail.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    async fn send_to(&self, to: &Address, message: OutgoingMessage<'_>) -> Result<(), SendError> {
        let email = self.compose(to, message).map_err(SendError::Permanent)?;
        let transport = self.transport().map_err(|error| self.explain(&error))?;
        match tokio::time::timeout(self.timeout, transport.send(email)).await {
            Ok(Ok(_response)) => Ok(()),
            Ok(Err(error)) => Err(self.explain(&error)),
            Err(_late) => Err(SendError::Temporary(format!(
                "the mail server took longer than {} s",
                self.timeout.as_secs()
            ))),
        }
    }

    /// Composes the e-mail. The subject is one line and encoded, and the addresses were parsed, so no
    /// text can add a header.
    fn compose(&self, to: &Address, message: OutgoingMessage<'_>) -> Result<Message, String> {
        let id = format!("<{}@{}>", message.key(), self.from.email.domain());
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(message.title(MAX_SUBJECT_CHARS))
            .date(message.sent_at.into())
            .message_id(Some(id))
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(message.text(MAX_TEXT_BYTES))
            .map_err(|error| format!("the e-mail cannot be composed: {error}"))
    }

    fn transport(&self) -> Result<AsyncSmtpTransport<Tokio1Executor>, smtp::Error> {
        lango_net::install_tls();
        let settings = &self.settings;
        let host = settings.host.trim();
        let builder = match settings.tls {
            SmtpTls::Starttls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host)?,
            SmtpTls::Implicit => AsyncSmtpTransport::<Tokio1Executor>::relay(host)?,
            SmtpTls::None => AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host),
        };
        let port = settings
            .port
            .map_or(settings.tls.default_port(), |port| port.get());
        let mut builder = builder
            .port(port)
            .timeout(Some(COMMAND_TIMEOUT.min(self.timeout)));
        if let Some(password) = self.password() {
            let credentials = Credentials::new(settings.user.clone(), password.expose().to_owned());
            builder = builder
                .credentials(credentials)
                .authentication(vec![Mechanism::Plain, Mechanism::Login]);
        }
        Ok(builder.build())
    }

    /// Returns the password if there is a user who needs it.
    fn password(&self) -> Option<&Secret> {
        let has_user = !self.settings.user.is_empty();
        self.settings.password.as_ref().filter(|_| has_user)
    }

    /// Sorts an error of the transport. Leaves out what the server said if it holds the password, in
    /// plain or in an encoded form.
    fn explain(&self, error: &smtp::Error) -> SendError {
        let reason = innermost_cause(error);
        let mut text = match error.status() {
            Some(code) => format!("the mail server refused it with {code}: {reason}"),
            None => format!("the mail server could not be used: {reason}"),
        };
        if let Some(password) = self.password() {
            text = without_password(text, &self.settings.user, password);
        }
        let text = truncated_line(&text, 300);
        // A client error means that the server lacks encryption or a way to log in.
        if error.is_permanent() || error.is_client() {
            SendError::Permanent(text)
        } else {
            SendError::Temporary(text)
        }
    }
}

/// Returns the text of the innermost cause: the outer ones repeat it.
fn innermost_cause(error: &smtp::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Removes a text that quotes the password, the whole of it: an encoded form may be quoted in parts.
fn without_password(text: String, user: &str, password: &Secret) -> String {
    let plain = password.expose();
    let encoded = [
        STANDARD_NO_PAD.encode(plain),
        STANDARD_NO_PAD.encode(format!("\0{user}\0{plain}")),
        STANDARD_NO_PAD.encode(format!("{user}\0{user}\0{plain}")),
    ];
    let is_quoted = |form: &str| !form.is_empty() && text.contains(form);
    if is_quoted(plain) || encoded.iter().any(|form| is_quoted(form)) {
        "the mail server refused it, with a text that contains the password".to_owned()
    } else {
        text
    }
}

/// Sends e-mails to one address.
pub struct EmailSender<'a> {
    pub channel: &'a MailChannel,
    pub to: &'a Address,
}

impl DeliverySender for EmailSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        async move {
            self.channel.send_to(self.to, message).await?;
            Ok(SentMessage::default())
        }
        .boxed()
    }
}

/// Tells other programs not to answer automatically (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim();
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> SmtpSettings {
        SmtpSettings {
            host: "mail.example.com".to_owned(),
            from: "Lango <lango@example.com>".to_owned(),
            ..SmtpSettings::default()
        }
    }

    #[test]
    fn incomplete_and_unsafe_settings_are_refused() {
        let setup = |change: fn(&mut SmtpSettings)| {
            let mut settings = settings();
            change(&mut settings);
            MailChannel::new(&settings).err()
        };
        assert_eq!(setup(|_| {}), None);
        assert_eq!(setup(|s| s.host.clear()), Some(MailSetupError::NotSet));
        assert_eq!(
            setup(|s| s.from = "a@b.example\r\nBcc: x@y.example".to_owned()),
            Some(MailSetupError::From(
                "a@b.example Bcc: x@y.example".to_owned()
            ))
        );
        assert_eq!(
            setup(|s| s.user = "ann".to_owned()),
            Some(MailSetupError::NoPassword)
        );
        let with_password = |s: &mut SmtpSettings| {
            s.user = "ann".to_owned();
            s.password = Some(Secret::new("hunter22hunter22"));
            s.tls = SmtpTls::None;
        };
        let mut clear_text = settings();
        with_password(&mut clear_text);
        assert_eq!(
            MailChannel::new(&clear_text).err(),
            Some(MailSetupError::ClearTextPassword(
                "mail.example.com".to_owned()
            ))
        );
        clear_text.host = "127.0.0.1".to_owned();
        assert!(MailChannel::new(&clear_text).is_ok());
    }

    #[test]
    fn no_form_of_the_password_is_repeated() {
        let password = Secret::new("correct horse");
        for hostile in [
            "535 wrong password: correct horse",
            "535 you sent AGFubgBjb3JyZWN0IGhvcnNl",
            "535 you sent Y29ycmVjdCBob3JzZQ==",
        ] {
            let shown = without_password(hostile.to_owned(), "ann", &password);
            assert!(shown.ends_with("contains the password"), "{shown}");
        }
        let harmless = "535 no such user".to_owned();
        assert_eq!(
            without_password(harmless.clone(), "ann", &password),
            harmless
        );
    }
}
