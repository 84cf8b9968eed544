//! Runs MiniWoB++ against the browser's tools. The pages come from the Python package and are not committed.

use anyhow::Result;

use crate::{root, step};

const PACKAGE: &str = "miniwob==1.1.0";

pub fn eval(arguments: &[String]) -> Result<()> {
    let folder = root().join("target/miniwob");
    let html = folder.join("pages/miniwob/html");
    if !html.is_dir() {
        std::fs::create_dir_all(&folder)?;
        let target = folder.display().to_string();
        let download = [
            "-m",
            "pip",
            "download",
            PACKAGE,
            "--no-deps",
            "--quiet",
            "--dest",
            &target,
        ];
        step("python3", &download)?;
        let wheel = format!("{target}/miniwob-1.1.0-py3-none-any.whl");
        let pages = format!("{target}/pages");
        step("python3", &["-m", "zipfile", "-e", &wheel, &pages])?;
    }
    let html = html.display().to_string();
    let mut run = vec![
        "run",
        "--quiet",
        "--package",
        "lango-browser",
        "--example",
        "miniwob",
        "--",
        &html,
    ];
    run.extend(arguments.iter().map(String::as_str));
    step("cargo", &run)
}
