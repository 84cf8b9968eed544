//! E-mail against a scripted SMTP server.

use std::num::NonZeroU16;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_automation::delivery::{DeliveryChannels, MailChannel, SendError, SmtpSettings, SmtpTls};
use lango_domain::secret::Secret;

use super::smtp_server::{SmtpScript, SmtpServer};
use super::{DeliveryHarness, SECRET, delivery, send};

const TARGET: &str = "email:ann@example.com";

fn settings(server: &SmtpServer) -> SmtpSettings {
    SmtpSettings {
        host: "127.0.0.1".to_owned(),
        port: NonZeroU16::new(server.port),
        tls: SmtpTls::None,
        from: "Lango <lango@example.com>".to_owned(),
        ..SmtpSettings::default()
    }
}

fn with_password(settings: SmtpSettings) -> SmtpSettings {
    SmtpSettings {
        user: "lango".to_owned(),
        password: Some(Secret::new(SECRET)),
        ..settings
    }
}

fn harness(smtp: SmtpSettings) -> DeliveryHarness {
    DeliveryHarness {
        smtp,
        ..DeliveryHarness::new()
    }
}

#[tokio::test]
async fn sends_an_email_with_a_stable_id() {
    let server = SmtpServer::start(SmtpScript::default()).await;
    let harness = harness(settings(&server));
    let message = delivery(TARGET, "Disk fast voll: 93 %", "Grüße\n.\nend");
    send(&harness.channels(), &message).await.unwrap();
    let (headers, body) = server.email();
    for expected in [
        "From: Lango <lango@example.com>",
        "To: ann@example.com",
        "Subject: Disk fast voll: 93 %",
        "Auto-Submitted: auto-generated",
        "Date: Fri, 15 Jan 2027 08:01:00 +0000",
    ] {
        assert!(headers.iter().any(|line| line == expected), "{headers:?}");
    }
    let id = |headers: &[String]| {
        let found = headers.iter().find(|line| line.starts_with("Message-ID: "));
        found.unwrap().clone()
    };
    let first = id(&headers);
    assert!(first.ends_with("@example.com>"), "{first}");
    let body = STANDARD.decode(body.replace('\n', "")).unwrap();
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "Grüße\r\n.\r\nend",
        "the text is encoded as a whole"
    );
    send(&harness.channels(), &message).await.unwrap();
    assert_eq!(id(&server.email().0), first, "the same id in every attempt");
    let recipients = server
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("RCPT"));
    assert_eq!(
        recipients.collect::<Vec<_>>(),
        ["RCPT TO:<ann@example.com>", "RCPT TO:<ann@example.com>"]
    );
}

#[tokio::test]
async fn no_text_adds_a_header_or_a_recipient() {
    let server = SmtpServer::start(SmtpScript::default()).await;
    let harness = harness(settings(&server));
    for title in [
        "Hi\r\nBcc: eve@example.com",
        "Hi\nBcc: eve@example.com\n\nbody",
        "Hi\rBcc: eve@example.com",
        "Hi\u{85}Bcc: eve@example.com",
        "Hi\u{2028}Bcc: eve@example.com",
        "Grüße\r\nBcc: eve@example.com",
        &format!("{}\r\nBcc: eve@example.com", "long ".repeat(500)),
    ] {
        let text = "\r\n.\r\nMAIL FROM:<eve@example.com>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\n";
        send(&harness.channels(), &delivery(TARGET, title, text))
            .await
            .unwrap();
        let (headers, _) = server.email();
        assert!(
            !headers
                .iter()
                .any(|line| line.to_lowercase().starts_with("bcc")),
            "{headers:?}"
        );
    }
    let lines = server.lines();
    let mails = lines.iter().filter(|line| line.starts_with("MAIL FROM"));
    assert_eq!(
        mails.count(),
        7 + 7,
        "seven e-mails, and seven lines of text"
    );
    let is_command = |at: usize| lines[at].starts_with("RCPT") && lines[at - 1].starts_with("MAIL");
    for at in (1..lines.len()).filter(|at| is_command(*at)) {
        let is_quoted = lines[at - 1].contains("eve");
        assert!(is_quoted || lines[at].contains("ann"), "{:?}", lines[at]);
    }
}

#[tokio::test]
async fn replies_of_the_server_decide_about_another_attempt() {
    for (word, reply, is_temporary) in [
        ("MAIL", "451 try later", true),
        ("RCPT", "450 mailbox busy", true),
        ("RCPT", "550 no such user", false),
        ("MAIL", "552 too large", false),
        ("DATA", "554 spam", false),
        ("EHLO", "oops", true),
    ] {
        let script = SmtpScript {
            replies: vec![(word, reply.to_owned())],
            ..SmtpScript::default()
        };
        let server = SmtpServer::start(script).await;
        let error = harness(settings(&server))
            .send(TARGET, "x")
            .await
            .unwrap_err();
        assert_eq!(
            matches!(error, SendError::Temporary(_)),
            is_temporary,
            "{reply}: {error:?}"
        );
    }
}

#[tokio::test]
async fn password_is_sent_once_and_never_shown() {
    let accepting = SmtpServer::start(SmtpScript {
        extensions: vec!["AUTH PLAIN LOGIN"],
        ..SmtpScript::default()
    })
    .await;
    harness(with_password(settings(&accepting)))
        .send(TARGET, "x")
        .await
        .unwrap();
    let plain = STANDARD.encode(format!("\0lango\0{SECRET}"));
    assert!(accepting.lines().contains(&format!("AUTH PLAIN {plain}")));
    for reply in [
        format!("535 wrong: {SECRET}"),
        format!("535 wrong: {plain}"),
        format!("454 later: {}", STANDARD.encode(SECRET)),
    ] {
        let server = SmtpServer::start(SmtpScript {
            extensions: vec!["AUTH PLAIN LOGIN"],
            replies: vec![("AUTH", reply.clone())],
        })
        .await;
        let harness = harness(with_password(settings(&server)));
        let error = harness.send(TARGET, "x").await.unwrap_err();
        let shown = format!("{error:?}");
        assert!(shown.contains("contains the password"), "{shown}");
        assert!(!shown.contains(SECRET) && !shown.contains(&plain[..plain.len() - 4]));
        assert_eq!(
            matches!(error, SendError::Permanent(_)),
            reply.starts_with("535"),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn server_without_encryption_gets_nothing() {
    let server = SmtpServer::start(SmtpScript {
        extensions: vec!["AUTH PLAIN"],
        ..SmtpScript::default()
    })
    .await;
    let smtp = SmtpSettings {
        tls: SmtpTls::Starttls,
        ..with_password(settings(&server))
    };
    let error = harness(smtp).send(TARGET, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Permanent(_)), "{error:?}");
    let lines = server.lines();
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("EHLO") || line == "QUIT"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn silent_and_absent_servers_are_tried_again_later() {
    let server = SmtpServer::start(SmtpScript {
        replies: vec![("MAIL", String::new())],
        ..SmtpScript::default()
    })
    .await;
    let mail = MailChannel::new(&settings(&server)).unwrap();
    let channels = DeliveryChannels {
        mail: Ok(mail.with_timeout(Duration::from_millis(300))),
        ..DeliveryHarness::new().channels()
    };
    let error = send(&channels, &delivery(TARGET, "a", "b"))
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error:?}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let smtp = SmtpSettings {
        port: NonZeroU16::new(port),
        ..settings(&server)
    };
    let error = harness(smtp).send(TARGET, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error:?}");
}
