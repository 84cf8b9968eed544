//! Where the peers are, and how they get there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;

/// What is asked of the Python index; the file names the environment.
const PYTHON_PACKAGES: [(&str, &[&str]); 2] = [
    (
        "python-1.0",
        &[
            "a2a-sdk[http-server]==1.3.0",
            "uvicorn",
            "httpx",
            "openai==3.49.0",
            "llm==0.36",
        ],
    ),
    (
        "python-0.3",
        &["a2a-sdk[http-server]==0.3.26", "uvicorn", "httpx"],
    ),
];

/// The folder that everything was put into.
pub struct Peers {
    folder: PathBuf,
    pub lango: PathBuf,
}

impl Peers {
    /// A script of `peers/python` in one of the environments.
    pub fn python(&self, environment: &str, script: &str) -> Command {
        let mut command = Command::new(self.folder.join(environment).join("bin/python"));
        command.arg(root().join("peers/python").join(script));
        command
    }

    /// A program that such an environment brought along.
    pub fn python_program(&self, environment: &str, program: &str) -> Command {
        Command::new(self.folder.join(environment).join("bin").join(program))
    }

    /// A script of `peers/node`, run where its packages are.
    pub fn node(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(script).current_dir(self.folder.join("node"));
        command
    }

    /// The client or the server that was made with a kit.
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

/// Installs what is missing; what is there already is used as it is.
pub fn install() -> Result<Peers> {
    let target = target_folder();
    let folder = target.parent().unwrap_or(&target).join("peers");
    fs::create_dir_all(&folder)?;
    for (name, packages) in PYTHON_PACKAGES {
        install_once(&folder, name, &packages.join("\n"), || {
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
        })?;
    }
    install_node(&folder)?;
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

fn install_node(folder: &Path) -> Result<()> {
    let (from, to) = (root().join("peers/node"), folder.join("node"));
    fs::create_dir_all(&to)?;
    for file in fs::read_dir(&from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    let wanted = fs::read_to_string(from.join("package.json"))?;
    install_once(folder, "node", &wanted, || {
        run_quietly(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .current_dir(&to),
        )
    })
}

/// Does what a text asks for unless that very text was done before.
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

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
