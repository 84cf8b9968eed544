//! The folders that a program needs to run at all: where it is installed. A program of the system needs
//! none.

use std::collections::BTreeSet;
use std::io::Read as _;
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

/// Most bytes of the first line of a script.
const MAX_FIRST_LINE: u64 = 512;

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

/// Returns the folders in which a program, the script files among its arguments, and their interpreters are
/// installed. `path` is where programs are found.
pub(crate) fn program_folders(
    program: &Path,
    args: &[String],
    (path, home): (&str, Option<&Path>),
) -> Vec<PathBuf> {
    let scripts = args.iter().map(Path::new);
    let scripts = scripts.filter(|file| file.is_absolute() && file.is_file());
    let named: Vec<&Path> = std::iter::once(program).chain(scripts).collect();
    let interpreters = named.iter().filter_map(|file| interpreter(file, path));
    let interpreters: Vec<PathBuf> = interpreters.collect();
    let mut folders = BTreeSet::new();
    for file in named
        .iter()
        .copied()
        .chain(interpreters.iter().map(PathBuf::as_path))
    {
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

/// Returns the program that the first line of a script names.
fn interpreter(script: &Path, path: &str) -> Option<PathBuf> {
    let mut start = Vec::new();
    let file = std::fs::File::open(script).ok()?;
    file.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(start.strip_prefix(b"#!")?).into_owned();
    let mut words = start.lines().next()?.split_whitespace();
    let first = words.next()?;
    let is_lookup = Path::new(first)
        .file_name()
        .is_some_and(|name| name == "env");
    let program = match is_lookup {
        true => words.find(|word| !word.starts_with('-') && !word.contains('='))?,
        false => first,
    };
    find_program(program, path, Path::new("/"))
}

/// Returns the folder with everything that belongs to a program: its packages, its virtual environment, the
/// installation of an interpreter, or else only its own folder.
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
    // The home folder and `.local` hold more than programs.
    let is_shared = |folder: &Path| {
        home == Some(folder) || folder.ends_with(".local") || folder.parent().is_none()
    };
    let parent = own.parent().filter(|parent| {
        own.ends_with("bin")
            && !is_shared(parent)
            && (parent.join("pyvenv.cfg").is_file() || parent.join("lib").is_dir())
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
        let folders =
            |program: &Path, args: &[String]| program_folders(program, args, ("/bin", None));
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
    fn a_script_needs_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let python = root.join("python-3/bin/python3");
        for made in [
            "python-3/bin",
            "python-3/lib",
            "app",
            "home/.local/bin",
            "home/.local/lib",
        ] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::write(&python, "").unwrap();
        let script = root.join("app/server");
        let search = python.parent().unwrap().display().to_string();
        let folders = || program_folders(&script, &[], (&search, Some(&root.join("home"))));
        for line in [
            format!("#!{}", python.display()),
            "#!/usr/bin/env -S A=b python3 -u".to_owned(),
        ] {
            std::fs::write(&script, format!("{line}\nprint()\n")).unwrap();
            assert_eq!(
                folders(),
                [root.join("app"), root.join("python-3")],
                "{line}"
            );
        }
        for line in ["#!", "#!/usr/bin/env", "\0\0", ""] {
            std::fs::write(&script, line).unwrap();
            assert_eq!(folders(), [root.join("app")], "{line}");
        }
        let own = root.join("home/.local/bin/tool");
        std::fs::write(&own, "").unwrap();
        let folders = program_folders(&own, &[], ("", Some(&root.join("home"))));
        assert_eq!(folders, [root.join("home/.local/bin")]);
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
