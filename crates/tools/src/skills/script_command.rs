//! The command to run a script of a skill.

use std::ffi::OsString;
use std::path::PathBuf;

use lango_domain::ToolError;

use super::snapshot::{SkillSnapshot, SnapshotEntry, SnapshotEntryKind};
use super::{Skill, quote};
use crate::shell::Program;

/// A script with its arguments, ready to be displayed and run.
pub(super) struct ScriptCommand {
    /// The name below `scripts/`.
    pub script: String,
    /// The path of the file, relative to the skill's folder.
    pub file: String,
    args: Vec<String>,
    path: PathBuf,
    /// The interpreter with its arguments; empty if the script is executable.
    interpreter: Vec<String>,
}

impl ScriptCommand {
    /// Finds a script in a snapshot that keeps its content.
    pub fn find(
        skill: &Skill,
        snapshot: &SkillSnapshot,
        requested: &str,
        args: &[String],
    ) -> Result<Self, ToolError> {
        let file = script_path(requested);
        let Some((script, entry)) = snapshot.scripts().find(|(_, entry)| entry.path == file) else {
            return Err(unknown_script(skill, snapshot, requested));
        };
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(ToolError(
                "an argument must not contain a NUL character".to_owned(),
            ));
        }
        let interpreter = interpreter(entry).ok_or_else(|| {
            ToolError(format!(
                "{file} cannot be run: it is not executable and does not start with `#!`"
            ))
        })?;
        Ok(Self {
            script: script.to_owned(),
            path: skill.folder.join(&file),
            file,
            args: args.to_vec(),
            interpreter,
        })
    }

    /// Returns the script and its arguments on one line.
    pub fn subject(&self) -> String {
        quote::display_line(&[std::slice::from_ref(&self.script), &self.args].concat())
    }

    /// Returns the pattern for the script with any arguments, or `None` if its name has special
    /// characters.
    pub fn pattern(&self) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let rest = if self.args.is_empty() { "" } else { " *" };
        self.script
            .chars()
            .all(is_plain)
            .then(|| format!("{}{rest}", self.script))
    }

    /// Returns the command line for display.
    pub fn display_line(&self) -> String {
        quote::display_line(&self.argv(&self.path.to_string_lossy()))
    }

    pub fn program(&self) -> Result<Program, ToolError> {
        if self.interpreter.is_empty() {
            let args = self.args.iter().map(OsString::from).collect();
            return Ok(Program::File {
                path: self.path.clone(),
                args,
            });
        }
        let not_utf8 = || ToolError("the path of the skill's folder is not valid UTF-8".to_owned());
        let path = self.path.to_str().ok_or_else(not_utf8)?;
        Ok(Program::Line(format!(
            "exec {}",
            quote::shell_line(&self.argv(path))
        )))
    }

    fn argv(&self, path: &str) -> Vec<String> {
        let path = path.to_owned();
        self.interpreter
            .iter()
            .chain([&path])
            .chain(&self.args)
            .cloned()
            .collect()
    }
}

/// Returns the path of a script relative to the skill's folder. The name may start with `scripts/`.
pub(super) fn script_path(requested: &str) -> String {
    let script = requested.strip_prefix("./").unwrap_or(requested);
    format!(
        "scripts/{}",
        script.strip_prefix("scripts/").unwrap_or(script)
    )
}

/// Returns the interpreter of a script, or `None` if it cannot be run. Scripts from an archive
/// often lack the executable bit; their interpreter is derived from the first line or the file
/// extension.
pub(super) fn interpreter(entry: &SnapshotEntry) -> Option<Vec<String>> {
    if entry.kind == SnapshotEntryKind::Executable {
        return Some(Vec::new());
    }
    let first = entry
        .content
        .as_deref()
        .and_then(|content| content.split(|byte| *byte == b'\n').next());
    let shebang = first.and_then(|line| std::str::from_utf8(line.strip_prefix(b"#!")?).ok());
    if let Some(line) = shebang.filter(|line| !line.trim().is_empty() && !line.contains('\0')) {
        return Some(line.split_whitespace().map(str::to_owned).collect());
    }
    let interpreter = match entry.path.rsplit_once('.')?.1 {
        "sh" => "sh",
        "bash" => "bash",
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        "rb" => "ruby",
        "pl" => "perl",
        _ => return None,
    };
    Some(vec![interpreter.to_owned()])
}

fn unknown_script(skill: &Skill, snapshot: &SkillSnapshot, requested: &str) -> ToolError {
    let known: Vec<&str> = snapshot.scripts().map(|(name, _)| name).take(50).collect();
    let requested = lango_text::sanitize::one_line(requested);
    ToolError(match known.as_slice() {
        [] => format!("the skill {} has no scripts", skill.name),
        known => format!(
            "the skill {} has no script `{requested}`; it has: {}",
            skill.name,
            known.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::skills::snapshot::SnapshotPurpose;
    use crate::skills::{SkillOrigin, read_skill};

    fn line(program: Program) -> String {
        match program {
            Program::Line(line) => line,
            Program::File { path, args } => {
                format!("{}{args:?}", path.file_name().unwrap().display())
            }
        }
    }

    #[test]
    fn runs_scripts_directly_or_with_an_interpreter() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("s");
        fs::create_dir_all(folder.join("scripts")).unwrap();
        fs::write(
            folder.join("SKILL.md"),
            "---\nname: s\ndescription: d\n---\n",
        )
        .unwrap();
        for (name, content, mode) in [
            ("a", "#!/bin/sh\n", 0o755),
            ("b.py", "print()", 0o644),
            ("c", "#!/usr/bin/env ruby\n", 0o644),
            ("d", "data", 0o644),
        ] {
            let path = folder.join("scripts").join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let skill = read_skill(&folder, SkillOrigin::User).unwrap();
        let snapshot = SkillSnapshot::take(&folder, SnapshotPurpose::Inspect).unwrap();
        let find = |requested: &str, args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            ScriptCommand::find(&skill, &snapshot, requested, &args)
        };
        let scripts = skill.folder.join("scripts").display().to_string();
        let run = |requested: &str, args: &[&str]| {
            line(find(requested, args).unwrap().program().unwrap())
        };
        assert_eq!(run("a", &["x y", "$(z)"]), r#"a["x y", "$(z)"]"#);
        assert_eq!(
            run("./scripts/b.py", &["it's; rm"]),
            format!(r"exec python3 {scripts}/b.py 'it'\''s; rm'")
        );
        assert_eq!(run("c", &[]), format!("exec /usr/bin/env ruby {scripts}/c"));
        assert_eq!(find("a", &["x y"]).unwrap().subject(), "a 'x y'");
        assert_eq!(find("a", &["x"]).unwrap().pattern().as_deref(), Some("a *"));
        assert_eq!(find("a", &[]).unwrap().pattern().as_deref(), Some("a"));
        for (requested, args, expected) in [
            ("d", "", "not executable"),
            ("a", "nul\0", "NUL"),
            ("e", "", "it has: a, b.py, c, d"),
            ("../SKILL.md", "", "no script `../SKILL.md`"),
            ("/bin/sh", "", "no script"),
        ] {
            let failure = find(requested, &[args]).err().unwrap();
            assert!(failure.0.contains(expected), "{failure}");
        }
    }
}
