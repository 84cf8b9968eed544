//! The measured pages, served on loopback.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const MAX_REQUEST: usize = 64 * 1024;

/// A page with a button that changes one line.
const CLICK_PAGE: &str = "<!doctype html><title>Counter</title><h1>Counter</h1>\
    <button onclick=\"times.textContent = ++count\">Add</button>\
    <p>clicked <span id=times>0</span> times</p><script>let count = 0</script>";

pub struct Page {
    pub name: String,
    html: Vec<u8>,
}

/// Reads `NAME.html` and `NAME/source.html` of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<Page>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_html = path.extension().is_some_and(|end| end == "html");
        let file = match is_html {
            true => path.clone(),
            false => path.join("source.html"),
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if file.is_file() {
            let html =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            pages.push(Page {
                name: name.into_owned(),
                html,
            });
        }
    }
    if pages.is_empty() {
        bail!(
            "no pages in {}: expected NAME.html or NAME/source.html",
            folder.display()
        );
    }
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(pages)
}

/// Makes pages of the kinds that cost most.
pub fn make() -> Vec<Page> {
    let repeated = |count: usize, part: &dyn Fn(usize) -> String| {
        (0..count).map(part).collect::<Vec<_>>().join("\n")
    };
    let article = repeated(300, &|n| {
        format!(
            "<p>Paragraph {n}: the river rose by {n} centimeters, as <a href=/s{n}>station {n}</a> reports.</p>"
        )
    });
    let links = repeated(3_000, &|n| {
        format!("<li><a href=/article/{n}>Headline number {n}</a></li>")
    });
    let table = repeated(1_500, &|n| {
        format!(
            "<tr><td>{n}</td><td>Product {n}</td><td>{}.50</td></tr>",
            n % 90
        )
    });
    let form = repeated(200, &|n| {
        format!(
            "<label>Field {n} <input name=f{n}></label><select><option>low<option>high</select><br>"
        )
    });
    let dead = repeated(20, &|n| {
        format!(
            "<script src=http://ads{n}.invalid/a.js></script><img src=http://img{n}.invalid/i.png>"
        )
    });
    let script = "<div id=root></div><script>setTimeout(() => { for (let n = 0; n < 500; n++) \
        root.insertAdjacentHTML('beforeend', `<p>Entry ${n} <button>Open ${n}</button></p>`) }, 50)</script>";
    let pages = [
        ("article", article.clone()),
        ("dead-third-parties", format!("{dead}{article}")),
        ("form", format!("<form>{form}</form>")),
        ("links", format!("<ul>{links}</ul>")),
        ("scripted", script.to_owned()),
        ("table", format!("<table>{table}</table>")),
    ];
    let page = |(name, body): (&str, String)| {
        let mut html = String::new();
        let _ = write!(
            html,
            "<!doctype html><title>{name}</title><h1>{name}</h1>{body}"
        );
        Page {
            name: name.to_owned(),
            html: html.into_bytes(),
        }
    };
    pages.into_iter().map(page).collect()
}

/// Serves the pages. As a proxy it answers for every other host that it is dead.
pub struct PageServer {
    address: SocketAddr,
    pages: Arc<Vec<Page>>,
}

impl PageServer {
    pub async fn start(pages: Vec<Page>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, pages) = (listener.local_addr()?, Arc::new(pages));
        let served = Arc::clone(&pages);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Ok(Self { address, pages })
    }

    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn click_url(&self) -> String {
        format!("http://{}/click", self.address)
    }

    /// Returns the name and the address of every page.
    pub fn page_urls(&self) -> Vec<(String, String)> {
        let url = |(number, page): (usize, &Page)| {
            let url = format!("http://{}/pages/{number}/", self.address);
            (page.name.clone(), url)
        };
        self.pages.iter().enumerate().map(url).collect()
    }
}

async fn serve(mut stream: TcpStream, pages: Arc<Vec<Page>>) {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let target = text.split(' ').nth(1).unwrap_or_default();
    // Playwright MCP asks its proxy for loopback pages too.
    let own = stream
        .local_addr()
        .map(|address| format!("http://{address}"));
    let target = own
        .ok()
        .and_then(|own| target.strip_prefix(own.as_str()))
        .unwrap_or(target);
    let number = target
        .strip_prefix("/pages/")
        .and_then(|rest| rest.strip_suffix('/'))
        .and_then(|number| number.parse::<usize>().ok());
    let page = number.and_then(|number| pages.get(number));
    let (status, body) = match (target, page) {
        ("/click", _) => ("200 OK", CLICK_PAGE.as_bytes()),
        (_, Some(page)) => ("200 OK", page.html.as_slice()),
        (path, None) if path.starts_with('/') => ("404 Not Found", &[][..]),
        _ => ("502 Bad Gateway", &[][..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    let _ = stream.shutdown().await;
}
