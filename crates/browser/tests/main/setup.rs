//! A server on loopback and a navigator with its tools.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use lango_browser::{
    BrowserOptions, BrowserSettings, Navigator, NavigatorParts, NavigatorStorage, ProfileStore,
    tools,
};
use lango_domain::{Intent, SecretField, Tool, ToolContext, ToolOutput};
use lango_net::AddressPolicy;
use lango_testkit::tool_context_for;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Pages of a test, and the requests that arrived.
#[derive(Clone)]
pub struct TestServer {
    pub address: SocketAddr,
    pages: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    locks: Arc<Mutex<HashMap<String, String>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_on("127.0.0.1:0").await
    }

    pub async fn start_on(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            pages: Arc::default(),
            locks: Arc::default(),
            requests: Arc::default(),
        };
        let served = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = served.clone();
                tokio::spawn(async move { server.answer(stream).await });
            }
        });
        server
    }

    /// Sets a page. A text that begins with `HTTP/` is sent as it is.
    pub fn page(&self, path: &str, html: &str) -> &Self {
        self.bytes(path, html.as_bytes())
    }

    pub fn bytes(&self, path: &str, content: &[u8]) -> &Self {
        let mut pages = self.pages.lock().unwrap();
        pages.insert(path.to_owned(), content.to_vec());
        self
    }

    /// Sets a page that is sent to requests with this header only, in lower case; others get `HTTP 401`.
    pub fn locked_page(&self, path: &str, header: &str, html: &str) -> &Self {
        let mut locks = self.locks.lock().unwrap();
        locks.insert(path.to_owned(), header.to_owned());
        self.page(path, html)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The first lines and bodies of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    async fn answer(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let (head_end, length) = loop {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some(end) = text.find("\r\n\r\n") {
                let length = text.lines().find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                });
                break (end + 4, length.unwrap_or(0usize));
            }
        };
        while bytes.len() < head_end + length {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let first = text.lines().next().unwrap_or_default();
        let body = &text[head_end..];
        self.requests
            .lock()
            .unwrap()
            .push(format!("{first} {body}"));
        let bare = path.split('?').next().unwrap_or_default();
        let page = {
            let pages = self.pages.lock().unwrap();
            pages.get(&path).or_else(|| pages.get(bare)).cloned()
        };
        let lock = self.locks.lock().unwrap().get(bare).cloned();
        let is_locked = lock.is_some_and(|header| !text.to_lowercase().contains(&header));
        let response = match page {
            _ if is_locked => b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"Staff\"\r\nContent-Length: 0\r\n\r\n".to_vec(),
            Some(page) if page.starts_with(b"HTTP/") => page,
            Some(page) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
                    page.len()
                );
                [head.into_bytes(), page].concat()
            }
            None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found".to_vec(),
        };
        let _ = stream.write_all(&response).await;
        let _ = stream.shutdown().await;
    }
}

/// A navigator with its tools.
pub struct Fixture {
    pub navigator: Arc<Navigator>,
    tools: Vec<Tool>,
    pub context: ToolContext,
    pub folder: tempfile::TempDir,
}

impl Fixture {
    /// A navigator that may reach loopback.
    pub fn new() -> Self {
        Self::with(AddressPolicy::Anywhere, BrowserSettings::default())
    }

    pub fn with(policy: AddressPolicy, settings: BrowserSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        let read_file = move |path: &str| {
            let bytes = std::fs::read(root.join(path)).map_err(|error| error.to_string())?;
            Ok((path.to_owned(), bytes))
        };
        let (saves, data) = (folder.path().to_path_buf(), folder.path().join("data"));
        let save_file = move |_: &ToolContext, path: &str, bytes: Vec<u8>| {
            let path = saves.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
            Ok(path.display().to_string())
        };
        let storage = NavigatorStorage {
            save_file: Some(Arc::new(save_file)),
            profiles: Some(ProfileStore::new(data)),
        };
        let parts = NavigatorParts {
            options: BrowserOptions {
                settings,
                policy,
                variables: std::env::vars_os().collect(),
                temp_folder: std::env::temp_dir(),
            },
            read_file: Arc::new(read_file),
            read_pdf: Arc::new(|bytes| Ok(format!("a PDF file of {} bytes", bytes.len()))),
        };
        let navigator = Navigator::with_storage(parts, storage);
        Self {
            tools: tools(&navigator),
            navigator,
            context: tool_context_for("navigator"),
            folder,
        }
    }

    fn tool(&self, name: &str) -> &Tool {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.name == name).unwrap()
    }

    pub async fn output(&self, tool: &str, args: Value) -> Result<ToolOutput, String> {
        let call = self.tool(tool).call(self.context.clone(), args);
        call.await.map_err(|error| error.0)
    }

    pub async fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        self.output(tool, args)
            .await
            .map(|output| output.content.text)
    }

    pub async fn intent(&self, tool: &str, args: Value) -> Result<Intent, String> {
        let intent = self.tool(tool).intent(self.context.clone(), args);
        intent.await.map_err(|error| error.0)
    }

    pub fn secret_fields(&self, tool: &str) -> Vec<SecretField> {
        self.tool(tool).secret_fields.clone()
    }

    /// Returns the hosts that an action would send its text to.
    pub fn hosts(&self, args: &Value) -> Vec<String> {
        let outgoing = self.tool("browser_action").outgoing(&self.context, args);
        outgoing.unwrap().to.known_hosts()
    }

    pub async fn open(&self, server: &TestServer, html: &str) -> String {
        static COUNT: OnceLock<Mutex<u32>> = OnceLock::new();
        let number = {
            let mut count = COUNT.get_or_init(Mutex::default).lock().unwrap();
            *count += 1;
            *count
        };
        let path = format!("/test-page-{number}");
        server.page(&path, html);
        self.navigate(&server.url(&path)).await.unwrap()
    }

    pub async fn navigate(&self, url: &str) -> Result<String, String> {
        self.call("browser_navigate", json!({ "url": url })).await
    }

    pub async fn act(&self, args: Value) -> Result<String, String> {
        self.call("browser_action", args).await
    }

    /// Returns the text of the whole open page.
    pub async fn page_text(&self) -> String {
        let args = json!({ "region": "page", "limit": 200 });
        self.call("browser_observe", args).await.unwrap()
    }
}

/// Returns the reference of the first line that contains a text.
pub fn reference(outline: &str, text: &str) -> String {
    let at = outline
        .find(text)
        .unwrap_or_else(|| panic!("no `{text}` in {outline}"));
    let start = outline[..at]
        .rfind("[e")
        .unwrap_or_else(|| panic!("no reference before `{text}`"));
    outline[start + 1..]
        .split([' ', ']'])
        .next()
        .unwrap()
        .to_owned()
}
