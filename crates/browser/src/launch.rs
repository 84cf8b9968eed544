//! Starts the browser process.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use landlock::{
    AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use tokio::process::{ChildStdin, ChildStdout};

use crate::error::BrowserError;
use crate::locate::InstalledBrowser;

/// Moves the pipes from the standard streams to the descriptors that the browser uses.
const MOVE_PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null"#;

/// The viewport of a page.
pub const VIEWPORT: (u32, u32) = (1280, 800);

/// The ends of the pipes of a running browser. The browser ends when they are dropped.
pub struct BrowserPipes {
    pub commands: ChildStdin,
    pub messages: ChildStdout,
}

/// The parts of a command line that differ between starts.
pub struct LaunchOptions<'a> {
    pub browser: &'a InstalledBrowser,
    pub is_headless: bool,
    pub proxy: SocketAddr,
    /// The folder of the browser's own files.
    pub profile: &'a Path,
    /// The display and similar variables, for a browser with windows.
    pub variables: Vec<(OsString, OsString)>,
}

/// Starts the browser.
pub fn launch(options: &LaunchOptions<'_>) -> Result<BrowserPipes, BrowserError> {
    let mut command = command(options);
    let port = options.proxy.port();
    // Landlock confines a thread and what it starts. The thread then waits for the browser, so that no
    // zombie is left.
    let (sender, receiver) = std::sync::mpsc::channel();
    let wait = move || {
        if let Err(error) = confine_network(port) {
            tracing::debug!("the browser is not confined by Landlock: {error}");
        }
        match command.spawn() {
            Ok(mut child) => {
                let _ = sender.send(take_pipes(&mut child));
                let _ = child.wait();
            }
            Err(error) => _ = sender.send(Err(error)),
        }
    };
    let failed = |error: io::Error| {
        let path = options.browser.path.display();
        BrowserError::Unavailable(format!("cannot start {path}: {error}"))
    };
    std::thread::Builder::new()
        .name("browser".to_owned())
        .spawn(wait)
        .map_err(failed)?;
    let (stdin, stdout) = receiver
        .recv()
        .map_err(|_| failed(io::Error::other("its thread ended")))?
        .map_err(failed)?;
    Ok(BrowserPipes {
        commands: ChildStdin::from_std(stdin).map_err(failed)?,
        messages: ChildStdout::from_std(stdout).map_err(failed)?,
    })
}

fn take_pipes(
    child: &mut Child,
) -> io::Result<(std::process::ChildStdin, std::process::ChildStdout)> {
    let missing = || io::Error::other("it has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    Ok((stdin, stdout))
}

/// Lets this thread, and all that it starts, open TCP connections to the proxy's port only.
fn confine_network(port: u16) -> Result<(), landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)?
        .create()?
        .add_rule(NetPort::new(port, AccessNet::ConnectTcp))?
        .restrict_self()
        .map(drop)
}

fn command(options: &LaunchOptions<'_>) -> Command {
    let is_root = rustix::process::geteuid().is_root();
    // Chromium's own sandbox refuses to work for root, so root becomes an ordinary user in a namespace.
    let mut command = if is_root {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-user=1000", "--map-group=1000", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    command
        .args(["-c", MOVE_PIPES])
        .arg(&options.browser.path)
        .args(flags(options))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir(options.profile)
        // No key or proxy of the environment reaches the browser.
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", options.profile)
        .env("TMPDIR", options.profile)
        .env("LANG", "C.UTF-8")
        .envs(options.variables.iter().map(|(name, value)| (name, value)));
    command
}

fn flags(options: &LaunchOptions<'_>) -> Vec<OsString> {
    let mut flags: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
    let mut add = |name: &str, value: OsString| {
        let mut flag = OsString::from(name);
        flag.push(value);
        flags.push(flag);
    };
    add("--user-data-dir=", options.profile.join("data").into());
    add(
        "--proxy-server=",
        format!("http://{}", options.proxy).into(),
    );
    let (width, height) = VIEWPORT;
    add("--window-size=", format!("{width},{height}").into());
    if options.is_headless && !options.browser.is_headless_shell {
        flags.push("--headless".into());
    }
    flags.push("about:blank".into());
    flags
}

/// The flags of every start.
const FLAGS: [&str; 31] = [
    "--remote-debugging-pipe",
    // All traffic goes through the proxy: also to this machine, and no UDP.
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    // Nothing is sent to the maker, and nothing is installed.
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--no-service-autorun",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
    // Pages behave in the background as in the foreground.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-ipc-flooding-protection",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,WebTransport",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--mute-audio",
];
