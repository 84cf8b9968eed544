//! Deliveries by e-mail to a real SMTP server (aiosmtpd).

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::peers::Peers;
use super::process::PeerServer;

const PASSWORD: &str = "correct horse battery";
/// Every way in which a text could try to add a header.
const HOSTILE_TITLE: &str = "Größe\r\nBcc: eve@example.com";
const TEXT: &str = "erste Zeile\n.\n.zweite Zeile: 93 %\n";

/// Sends an e-mail without encryption, to a server on this machine.
pub fn plain(peers: &Peers) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = start(peers, "plain", folder.path())?;
    let said = send(&settings(&server, "none", PASSWORD), folder.path())?;
    ensure!(said == "sent", "{said}");
    check_email(&read_email(folder.path(), 1)?, false)?;
    let said = send(&settings(&server, "none", "wrong"), folder.path())?;
    ensure!(
        said.starts_with("permanent: the mail server refused it with 535"),
        "{said}"
    );
    let said = send(&settings(&server, "starttls", PASSWORD), folder.path())?;
    ensure!(
        said.starts_with("permanent:"),
        "encryption is required: {said}"
    );
    ensure!(!folder.path().join("2.json").exists());
    Ok(())
}

/// Sends an e-mail over an encrypted connection, and refuses a certificate of an unknown authority.
pub fn encrypted(peers: &Peers) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = start(peers, "starttls", folder.path())?;
    let settings = settings(&server, "starttls", PASSWORD);
    let said = send(&settings, folder.path())?;
    ensure!(said == "sent", "{said}");
    check_email(&read_email(folder.path(), 1)?, true)?;
    let other = tempfile::tempdir()?;
    let _other_server = start(peers, "plain", other.path())?;
    let said = send(&settings, other.path())?;
    ensure!(said.contains("UnknownIssuer"), "{said}");
    ensure!(!folder.path().join("2.json").exists());
    Ok(())
}

fn start(peers: &Peers, mode: &str, folder: &Path) -> Result<PeerServer> {
    PeerServer::start(|port| {
        let mut command = peers.python("python-1.0", "smtp_server.py");
        command.arg(port.to_string()).arg(mode).arg(folder);
        command
    })
}

fn settings(server: &PeerServer, tls: &str, password: &str) -> String {
    json!({
        "host": "localhost", "port": server.port, "tls": tls, "user": "lango", "password": password,
        "from": "Lango <lango@example.com>",
    })
    .to_string()
}

/// Runs the example that sends one e-mail, with the authority of a folder as the only known one.
fn send(settings: &str, authority: &Path) -> Result<String> {
    let mut command = Command::new(super::peers::target_folder().join("debug/examples/send_email"));
    command
        .args([settings, "ann@example.com", HOSTILE_TITLE, TEXT])
        .env("SSL_CERT_FILE", authority.join("ca.pem"))
        .env_remove("SSL_CERT_DIR");
    let output = command.output().context("cannot start the example")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        output.status.success() && !said.contains(PASSWORD),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(said)
}

fn read_email(folder: &Path, number: usize) -> Result<Value> {
    let file = folder.join(format!("{number}.json"));
    let text = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn check_email(email: &Value, is_encrypted: bool) -> Result<()> {
    ensure!(email["sender"] == "lango@example.com", "{email}");
    ensure!(email["recipients"] == json!(["ann@example.com"]), "{email}");
    ensure!(email["encrypted"] == is_encrypted, "{email}");
    ensure!(email["user"] == "lango", "{email}");
    let text = email["text"].as_str().unwrap_or_default();
    ensure!(
        text.replace("\r\n", "\n").trim_end() == TEXT.trim_end(),
        "{email}"
    );
    let headers = email["headers"].as_array().context("headers")?;
    let value = |name: &str| {
        let found = headers.iter().find(|header| header[0] == name);
        found.and_then(|header| header[1].as_str())
    };
    ensure!(
        value("Subject") == Some("Größe Bcc: eve@example.com"),
        "{email}"
    );
    ensure!(value("To") == Some("ann@example.com"), "{email}");
    ensure!(value("Bcc").is_none(), "{email}");
    ensure!(value("Auto-Submitted") == Some("auto-generated"), "{email}");
    Ok(())
}
