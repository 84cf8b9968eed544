//! Installs the third-party peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;

/// Python packages of each virtual environment.
const PYTHON_PACKAGES: [(&str, &[&str]); 3] = [
    (
        "python-1.0",
        &[
            "a2a-sdk[http-server]==1.3.0",
            "uvicorn",
            "httpx",
            "openai==3.49.0",
            "llm==0.36",
            "aiosmtpd==1.4.6",
            "trustme==1.2.1",
        ],
    ),
    (
        "python-0.3",
        &["a2a-sdk[http-server]==0.3.26", "uvicorn", "httpx"],
    ),
    (
        "python-mcp",
        &["fastmcp==4.1.2", "mcp-server-time==2026.10.19"],
    ),
];

/// The environment of the peer of `lango-bench automation`. Only this benchmark needs it.
const DBOS: (&str, &[&str]) = ("python-dbos", &["dbos==3.3.0"]);

/// The folder that holds the installed peers.
pub struct Peers {
    folder: PathBuf,
    pub lango: PathBuf,
}

impl Peers {
    /// Returns the command that runs a script of `peers/python` in an environment.
    pub fn python(&self, environment: &str, script: &str) -> Command {
        let mut command = Command::new(self.folder.join(environment).join("bin/python"));
        command.arg(root().join("peers/python").join(script));
        command
    }

    /// Returns the command for a program that an environment installs.
    pub fn python_program(&self, environment: &str, program: &str) -> Command {
        Command::new(self.folder.join(environment).join("bin").join(program))
    }

    /// Returns the command that runs a script of `peers/node` next to its packages.
    pub fn node(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(script).current_dir(self.folder.join("node"));
        command
    }

    /// Returns the words that start a tool server of the official packages.
    pub fn mcp_node(&self, package: &str) -> Vec<String> {
        let packages = self.folder.join("mcp/node_modules/@modelcontextprotocol");
        let script = packages.join(package).join("dist/index.js");
        vec!["node".to_owned(), script.display().to_string()]
    }

    /// Returns the client or the server of a kit.
    pub fn a2a(&self, kit: &str, part: &str) -> Command {
        match kit {
            "python-0.3" => self.python(kit, &format!("{part}_0_3.py")),
            "node" => self.node(&format!("a2a_{part}.mjs")),
            "rust" => {
                let mut peer = Command::new(self.folder.join("rust/debug/lango-test-peer"));
                peer.arg(part);
                peer
            }
            environment => self.python(environment, &format!("{part}_1_0.py")),
        }
    }
}

/// Installs missing peers and reuses existing ones.
pub fn install() -> Result<Peers> {
    let target = target_folder();
    // Never next to the target folder: by default that is `peers` of the repository itself.
    let folder = target.join("peers");
    fs::create_dir_all(&folder)?;
    for (name, packages) in PYTHON_PACKAGES {
        install_python(&folder, name, packages)?;
    }
    install_node(&folder, "node")?;
    install_node(&folder, "mcp")?;
    install_payment_peers()?;
    let rust = folder.join("rust");
    let manifest = root().join("peers/rust/Cargo.toml");
    eprintln!("== the Rust peer (its first build takes some minutes)");
    run_quietly(
        Command::new("cargo")
            .args(["build", "--quiet", "--locked", "--manifest-path"])
            .arg(manifest)
            .env("CARGO_TARGET_DIR", &rust),
    )?;
    Ok(Peers {
        folder,
        lango: target.join("debug/lango"),
    })
}

/// Installs DBOS, with which `lango-bench automation` compares.
pub fn install_dbos() -> Result<()> {
    let folder = target_folder().join("peers");
    fs::create_dir_all(&folder)?;
    install_python(&folder, DBOS.0, DBOS.1)
}

fn install_python(folder: &Path, name: &str, packages: &[&str]) -> Result<()> {
    install_once(folder, name, &packages.join("\n"), || {
        let environment = folder.join(name);
        run_quietly(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        run_quietly(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet"])
                .args(packages),
        )
    })
}

fn install_node(folder: &Path, name: &str) -> Result<()> {
    let (from, to) = (root().join("peers").join(name), folder.join(name));
    copy_files(&from, &to)?;
    let wanted = fs::read_to_string(from.join("package.json"))?;
    install_once(folder, name, &wanted, || {
        run_quietly(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .current_dir(&to),
        )
    })
}

/// The package with Circle's compiled contracts, and the files that the tests use. It is only unpacked.
const CONTRACTS: &str = "@stargatefinance/stg-evm-v2@2.0.6";
const CONTRACT_FILES: [&str; 3] = [
    "v2/FiatTokenV2_2.sol/FiatTokenV2_2.json",
    "v1/FiatTokenProxy.sol/FiatTokenProxy.json",
    "util/SignatureChecker.sol/SignatureChecker.json",
];

/// Installs what the tests of payments need: a chain for tests, the USDC contract, and an x402 server.
pub fn install_payment_peers() -> Result<()> {
    let (from, folder) = (root().join("peers/payments"), target_folder().join("peers"));
    let to = folder.join("payments");
    copy_files(&from, &to)?;
    let wanted = fs::read_to_string(from.join("package.json"))?;
    install_once(&folder, "payments", &wanted, || {
        run_quietly(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .current_dir(&to),
        )
        .context("npm is needed for the tests of payments")
    })?;
    install_once(&folder, "usdc", CONTRACTS, || unpack_contracts(&to))
}

/// Installs the MCP servers with which `lango-bench browser` compares. They use the installed browser.
pub fn install_browser_peers() -> Result<()> {
    let (from, folder) = (root().join("peers/browser"), target_folder().join("peers"));
    let to = folder.join("browser");
    copy_files(&from, &to)?;
    let wanted = fs::read_to_string(from.join("package.json"))?;
    install_once(&folder, "browser", &wanted, || {
        run_quietly(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
                .env("PUPPETEER_SKIP_DOWNLOAD", "1")
                .current_dir(&to),
        )
        .context("npm is needed for the peers of the browser")
    })
}

fn unpack_contracts(to: &Path) -> Result<()> {
    let folder = to.join("usdc");
    fs::create_dir_all(&folder)?;
    let pack = ["pack", "--silent", CONTRACTS];
    run_quietly(Command::new("npm").args(pack).current_dir(&folder))?;
    for file in CONTRACT_FILES {
        let name = format!("package/artifacts/src/usdc/impl/{file}");
        let archive = fs::read_dir(&folder)?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|end| end == "tgz"))
            .context("npm packed nothing")?;
        let depth = name.matches('/').count().to_string();
        let mut unpack = Command::new("tar");
        unpack
            .arg("xzf")
            .arg(&archive)
            .args(["--strip-components", &depth, &name])
            .current_dir(&folder);
        run_quietly(&mut unpack)?;
    }
    Ok(())
}

/// Copies the files of a folder, but not its folders.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

/// Runs `install` unless it already ran for the same `text`.
fn install_once(
    folder: &Path,
    name: &str,
    wanted: &str,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mark = folder.join(format!("{name}.installed"));
    if fs::read_to_string(&mark).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    eprintln!("== installing {name}");
    install()?;
    Ok(fs::write(mark, wanted)?)
}

fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

pub(super) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
