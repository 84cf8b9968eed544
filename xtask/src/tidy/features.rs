//! Checks that every build uses the same features of each dependency. A difference compiles the
//! dependency, and every crate above it, once for each set.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;

/// The builds that people and CI run, apart from the whole workspace with its tests.
const BUILDS: [&str; 3] = ["lango-cli", "lango-bench", "xtask"];

pub fn check() -> Result<Vec<String>> {
    let all = feature_sets(&["--workspace", "--edges", "normal,build,dev"])?;
    let mut problems = Vec::new();
    for package in BUILDS {
        let own = feature_sets(&["--package", package, "--edges", "normal,build"])?;
        problems.extend(own.difference(&all).map(|set| {
            format!("{package} builds {set}, the workspace with its tests builds other features")
        }));
    }
    Ok(problems)
}

/// Returns each dependency with its version and its features.
fn feature_sets(arguments: &[&str]) -> Result<BTreeSet<String>> {
    let output = Command::new("cargo")
        .args(["tree", "--offline", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p} [{f}]"])
        .args(arguments)
        .current_dir(root())
        .output()
        .context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    let external = text.lines().filter(|line| !line.contains("(/"));
    Ok(external
        .map(|line| line.replace(" (proc-macro)", ""))
        .collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_build_shares_its_dependencies() {
        assert_eq!(super::check().unwrap(), Vec::<String>::new());
    }
}
