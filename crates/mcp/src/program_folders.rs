//! The folders that a program needs to run at all: where it is installed. A program of the system needs
//! none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that the sandbox lets every program read.
const SYSTEM_FOLDERS: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/proc",
];

/// Finds a program as a shell does.
pub(crate) fn find_program(program: &str, path: &str, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let file = folder.join(program);
        return file.is_file().then_some(file);
    }
    path.split(':')
        .map(|folder| Path::new(folder).join(program))
        .find(|file| file.is_file())
}

/// Returns the folders in which a program and the script files among its arguments are installed.
pub(crate) fn program_folders(
    program: &Path,
    args: &[String],
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let scripts = args.iter().map(Path::new);
    let scripts = scripts.filter(|file| file.is_absolute() && file.is_file());
    let mut folders = BTreeSet::new();
    for file in std::iter::once(program).chain(scripts) {
        let real = file.canonicalize().ok();
        for file in std::iter::once(file.to_path_buf()).chain(real) {
            if !SYSTEM_FOLDERS.iter().any(|system| file.starts_with(system)) {
                folders.insert(installation(&file, home));
            }
        }
    }
    folders
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .collect()
}

/// Returns the folder with everything that belongs to a program: its packages, its virtual environment, or
/// else only its own folder.
fn installation(file: &Path, home: Option<&Path>) -> PathBuf {
    let packages = file
        .ancestors()
        .filter(|folder| {
            folder
                .file_name()
                .is_some_and(|name| name == "node_modules")
        })
        .last();
    if let Some(packages) = packages {
        return packages.to_path_buf();
    }
    let own = file.parent().unwrap_or(file);
    let parent = own.parent().filter(|parent| {
        own.ends_with("bin") && home != Some(*parent) && parent.join("pyvenv.cfg").is_file()
    });
    parent.unwrap_or(own).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_its_own_installation_only() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |path: &str| {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let (venv, _) = (make("venv/bin/server"), make("venv/pyvenv.cfg"));
        let script = make("app/node_modules/pkg/dist/index.js");
        let own = make("home/bin/tool");
        let folders = |program: &Path, args: &[String]| program_folders(program, args, None);
        assert_eq!(folders(&venv, &[]), [root.join("venv")]);
        let args = [script.display().to_string(), "/etc".to_owned()];
        assert_eq!(
            folders(Path::new("/usr/bin/node"), &args),
            [root.join("app/node_modules")]
        );
        assert_eq!(folders(&own, &[]), [root.join("home/bin")]);
        assert!(folders(Path::new("/usr/bin/env"), &[]).is_empty());
    }

    #[test]
    fn finds_programs_by_path() {
        let found = find_program("sh", "/nowhere:/bin:/usr/bin", Path::new("/"));
        assert_eq!(found, Some(PathBuf::from("/bin/sh")));
        assert_eq!(
            find_program("no-such-program", "/bin", Path::new("/")),
            None
        );
        assert_eq!(
            find_program("bin/sh", "", Path::new("/")),
            Some(PathBuf::from("/bin/sh"))
        );
    }
}
