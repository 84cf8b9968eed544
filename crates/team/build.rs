//! Embeds every file of `agents/` and `prompts/`, so that adding an agent only takes a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest.join("../..").canonicalize()?;
    let mut code = String::new();
    for (constant, folder) in [("AGENT_FILES", "agents"), ("PROMPT_FILES", "prompts")] {
        embed(&mut code, constant, &root.join(folder))?;
    }
    fs::write(
        PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs"),
        code,
    )?;
    Ok(())
}

fn embed(code: &mut String, constant: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    writeln!(code, "pub static {constant}: &[(&str, &str)] = &[")?;
    for file in &files {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        writeln!(
            code,
            "    ({name:?}, include_str!({:?})),",
            file.display().to_string()
        )?;
    }
    writeln!(code, "];")?;
    Ok(())
}
