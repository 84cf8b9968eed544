//! A scripted SMTP server.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// The server's replies to some commands, instead of the usual ones.
#[derive(Clone, Default)]
pub struct SmtpScript {
    /// Lines after the greeting of `EHLO`, such as `AUTH PLAIN`.
    pub extensions: Vec<&'static str>,
    /// The reply to commands that begin with a word. An empty reply means silence.
    pub replies: Vec<(&'static str, String)>,
}

pub struct SmtpServer {
    pub port: u16,
    lines: Arc<Mutex<Vec<String>>>,
}

impl SmtpServer {
    pub async fn start(script: SmtpScript) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = converse(stream, &script, &seen).await;
            }
        });
        Self { port, lines }
    }

    /// Returns every line that clients sent.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Returns the headers and the body of the last e-mail.
    pub fn email(&self) -> (Vec<String>, String) {
        let lines = self.lines();
        let data = lines.iter().rposition(|line| line == "DATA").unwrap();
        let end = lines[data..].iter().position(|line| line == ".").unwrap();
        let email = &lines[data + 1..data + end];
        let blank = email.iter().position(String::is_empty).unwrap();
        (email[..blank].to_vec(), email[blank + 1..].join("\n"))
    }
}

async fn converse(
    stream: tokio::net::TcpStream,
    script: &SmtpScript,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"220 mail.example ESMTP\r\n").await?;
    let mut is_data = false;
    while let Some(line) = lines.next_line().await? {
        seen.lock().unwrap().push(line.clone());
        let scripted = script
            .replies
            .iter()
            .find(|(word, _)| !is_data && line.starts_with(word));
        let reply = match (scripted, line.as_str()) {
            (Some((_, reply)), _) if reply.is_empty() => continue,
            (Some((_, reply)), _) => reply.clone(),
            (None, ".") if is_data => {
                is_data = false;
                "250 stored".to_owned()
            }
            (None, _) if is_data => continue,
            (None, "DATA") => {
                is_data = true;
                "354 go on".to_owned()
            }
            (None, "QUIT") => "221 bye".to_owned(),
            (None, text) if text.starts_with("EHLO") => ehlo_reply(script),
            (None, text) if text.starts_with("AUTH") => "235 welcome".to_owned(),
            (None, _) => "250 fine".to_owned(),
        };
        writer.write_all(format!("{reply}\r\n").as_bytes()).await?;
    }
    Ok(())
}

fn ehlo_reply(script: &SmtpScript) -> String {
    let mut lines = vec!["mail.example"];
    lines.extend(&script.extensions);
    let last = lines.len() - 1;
    let numbered = lines
        .iter()
        .enumerate()
        .map(|(at, line)| format!("250{}{line}", if at == last { ' ' } else { '-' }));
    numbered.collect::<Vec<_>>().join("\r\n")
}
