//! How a script is run.

use std::ffi::OsString;
use std::path::PathBuf;

use lango_domain::ToolError;

use super::snapshot::{SkillSnapshot, SnapshotEntry, SnapshotEntryKind};
use super::{Skill, quote};
use crate::shell::Program;

/// A script with its arguments, ready to be shown and to be run.
pub(super) struct ScriptCommand {
    /// The name below `scripts/`.
    pub script: String,
    /// The file's path in the skill's folder.
    pub file: String,
    args: Vec<String>,
    path: PathBuf,
    /// What runs it; nothing if it runs by itself.
    interpreter: Vec<String>,
}

impl ScriptCommand {
    /// Looks in a snapshot that kept the script's content.
    pub fn find(
        skill: &Skill,
        snapshot: &SkillSnapshot,
        asked: &str,
        args: &[String],
    ) -> Result<Self, ToolError> {
        let file = script_path(asked);
        let Some((script, entry)) = snapshot.scripts().find(|(_, entry)| entry.path == file) else {
            return Err(unknown_script(skill, snapshot, asked));
        };
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(ToolError(
                "an argument must not have a NUL character in it".to_owned(),
            ));
        }
        let interpreter = interpreter(entry).ok_or_else(|| {
            ToolError(format!(
                "{file} cannot be run: it is not executable and does not begin with `#!`"
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

    /// The script and its arguments on one line.
    pub fn subject(&self) -> String {
        quote::display_line(&[std::slice::from_ref(&self.script), &self.args].concat())
    }

    /// The same script, whatever its arguments; nothing if its name could be taken for more than itself.
    pub fn pattern(&self) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let rest = if self.args.is_empty() { "" } else { " *" };
        self.script
            .chars()
            .all(plain)
            .then(|| format!("{}{rest}", self.script))
    }

    /// What will be run, for people.
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
        let odd = || ToolError("the path of the skill's folder is not valid UTF-8".to_owned());
        let path = self.path.to_str().ok_or_else(odd)?;
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

/// The path in the skill's folder of a script, with or without `scripts/` before it.
pub(super) fn script_path(asked: &str) -> String {
    let script = asked.strip_prefix("./").unwrap_or(asked);
    format!(
        "scripts/{}",
        script.strip_prefix("scripts/").unwrap_or(script)
    )
}

/// What runs a script; nothing known if it cannot be run. Many come without their executable bit, since they were unpacked
/// from an archive; those say it in their first line or by the ending of their name.
pub(super) fn interpreter(entry: &SnapshotEntry) -> Option<Vec<String>> {
    if entry.kind == SnapshotEntryKind::Executable {
        return Some(Vec::new());
    }
    let first = entry
        .content
        .as_deref()
        .and_then(|content| content.split(|byte| *byte == b'\n').next());
    let said = first.and_then(|line| std::str::from_utf8(line.strip_prefix(b"#!")?).ok());
    if let Some(said) = said.filter(|said| !said.trim().is_empty() && !said.contains('\0')) {
        return Some(said.split_whitespace().map(str::to_owned).collect());
    }
    let known = match entry.path.rsplit_once('.')?.1 {
        "sh" => "sh",
        "bash" => "bash",
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        "rb" => "ruby",
        "pl" => "perl",
        _ => return None,
    };
    Some(vec![known.to_owned()])
}

fn unknown_script(skill: &Skill, snapshot: &SkillSnapshot, asked: &str) -> ToolError {
    let known: Vec<&str> = snapshot.scripts().map(|(name, _)| name).take(50).collect();
    let asked = lango_domain::text::one_line(asked);
    ToolError(match known.as_slice() {
        [] => format!("the skill {} has no scripts", skill.name),
        known => format!(
            "the skill {} has no script `{asked}`; it has: {}",
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
    fn a_script_is_run_by_itself_or_by_what_it_names() {
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
        let find = |asked: &str, args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            ScriptCommand::find(&skill, &snapshot, asked, &args)
        };
        let place = skill.folder.join("scripts").display().to_string();
        let run = |asked: &str, args: &[&str]| line(find(asked, args).unwrap().program().unwrap());
        assert_eq!(run("a", &["x y", "$(z)"]), r#"a["x y", "$(z)"]"#);
        assert_eq!(
            run("./scripts/b.py", &["it's; rm"]),
            format!(r"exec python3 {place}/b.py 'it'\''s; rm'")
        );
        assert_eq!(run("c", &[]), format!("exec /usr/bin/env ruby {place}/c"));
        assert_eq!(find("a", &["x y"]).unwrap().subject(), "a 'x y'");
        assert_eq!(find("a", &["x"]).unwrap().pattern().as_deref(), Some("a *"));
        assert_eq!(find("a", &[]).unwrap().pattern().as_deref(), Some("a"));
        for (asked, args, expected) in [
            ("d", "", "not executable"),
            ("a", "nul\0", "NUL"),
            ("e", "", "it has: a, b.py, c, d"),
            ("../SKILL.md", "", "no script `../SKILL.md`"),
            ("/bin/sh", "", "no script"),
        ] {
            let failure = find(asked, &[args]).err().unwrap();
            assert!(failure.0.contains(expected), "{failure}");
        }
    }
}
