//! A crate depends only on lower layers, never sideways; what ships never depends on what is for development.

use anyhow::Result;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::root;

pub fn check() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()?;
    let mut complaints = Vec::new();
    for package in metadata.workspace_packages() {
        match layer(package) {
            None => complaints.push(format!(
                "{}: its manifest lacks `[package.metadata] layer`",
                package.name
            )),
            Some(own) => complaints.extend(check_dependencies(&metadata, package, own)),
        }
    }
    Ok(complaints)
}

fn check_dependencies(metadata: &Metadata, package: &Package, own: u64) -> Vec<String> {
    let mut complaints = Vec::new();
    for dependency in package
        .dependencies
        .iter()
        .filter(|d| d.kind != DependencyKind::Development)
    {
        let packages = metadata.workspace_packages();
        let Some(target) = packages
            .into_iter()
            .find(|p| p.name.as_str() == dependency.name)
        else {
            continue;
        };
        if layer(target).is_some_and(|theirs| theirs >= own) {
            complaints.push(format!(
                "{} (layer {own}) depends on {}, which is not below it",
                package.name, target.name
            ));
        }
        if is_dev_only(target) && !is_dev_only(package) {
            complaints.push(format!(
                "{} ships and depends on {}, which does not",
                package.name, target.name
            ));
        }
    }
    complaints
}

fn layer(package: &Package) -> Option<u64> {
    package.metadata.get("layer")?.as_u64()
}

fn is_dev_only(package: &Package) -> bool {
    package.metadata.get("dev").is_some_and(|dev| dev == true)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_crate_depends_only_on_lower_layers() {
        assert_eq!(super::check().unwrap(), Vec::<String>::new());
    }
}
