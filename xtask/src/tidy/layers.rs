//! Checks that a crate depends only on lower layers, and that no shipped crate depends on a development crate.

use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::root;

/// The part of `cargo metadata` that the check needs.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    /// `[package.metadata]` of the manifest; null if there is none.
    metadata: serde_json::Value,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or null for a normal dependency.
    kind: Option<String>,
}

pub fn check() -> Result<Vec<String>> {
    let packages = workspace_packages()?;
    let mut problems = Vec::new();
    for package in &packages {
        match layer(package) {
            None => problems.push(format!(
                "{}: its manifest lacks `[package.metadata] layer`",
                package.name
            )),
            Some(own) => problems.extend(check_dependencies(&packages, package, own)),
        }
    }
    Ok(problems)
}

fn workspace_packages() -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: CargoMetadata = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(metadata.packages)
}

fn check_dependencies(packages: &[Package], package: &Package, own: u64) -> Vec<String> {
    let mut problems = Vec::new();
    let shipped = |dependency: &&Dependency| dependency.kind.as_deref() != Some("dev");
    for dependency in package.dependencies.iter().filter(shipped) {
        let Some(target) = packages.iter().find(|p| p.name == dependency.name) else {
            continue;
        };
        if layer(target).is_some_and(|theirs| theirs >= own) {
            problems.push(format!(
                "{} (layer {own}) depends on {}, which is not below it",
                package.name, target.name
            ));
        }
        if is_for_development(target) && !is_for_development(package) {
            problems.push(format!(
                "{} ships and depends on {}, which does not",
                package.name, target.name
            ));
        }
    }
    problems
}

fn layer(package: &Package) -> Option<u64> {
    package.metadata.get("layer")?.as_u64()
}

fn is_for_development(package: &Package) -> bool {
    package.metadata.get("dev").is_some_and(|dev| dev == true)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_crate_depends_only_on_lower_layers() {
        assert_eq!(super::check().unwrap(), Vec::<String>::new());
    }
}
