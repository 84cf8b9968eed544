//! The environment of a command: a few variables known to hold no secrets, and those allowed in the
//! settings.

use std::collections::BTreeMap;
use std::path::Path;

use lango_domain::{Intent, ToolError};

const DEFAULT_VARIABLES: [&str; 11] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "EDITOR",
    "HOSTNAME",
];
const DEFAULT_PREFIX: &str = "LC_";

/// Returns the variables that a command may see. `temp` is the private temporary folder of the
/// command.
pub fn allowed_variables(
    all: &BTreeMap<String, String>,
    allowed: &[String],
    temp: Option<&Path>,
) -> Vec<(String, String)> {
    let is_visible = |name: &String| {
        DEFAULT_VARIABLES.contains(&name.as_str())
            || name.starts_with(DEFAULT_PREFIX)
            || allowed.contains(name)
    };
    let mut visible: BTreeMap<String, String> = all
        .iter()
        .filter(|(name, _)| is_visible(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // There is no terminal, so programs must not wait for input.
    for (name, value) in [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ] {
        visible
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    if let Some(temp) = temp {
        let temp = temp.display().to_string();
        for name in [
            "TMPDIR",
            "XDG_CACHE_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
        ] {
            visible.insert(name.to_owned(), temp.clone());
        }
        // Git fails on a configuration file that it cannot read.
        visible
            .entry("GIT_CONFIG_GLOBAL".to_owned())
            .or_insert_with(|| "/dev/null".to_owned());
    }
    visible.into_iter().collect()
}

/// Settings that keep git from starting programs, which would fail in a read-only command.
const ISOLATED_GIT_ENV: [(&str, &str); 8] = [
    // Without optional locks, `git status` writes nothing and runs no hooks.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
];

/// Adds the git settings for a command that may not start other programs.
pub fn isolate_git(env: Vec<(String, String)>) -> Vec<(String, String)> {
    let others = env
        .into_iter()
        .filter(|(name, _)| ISOLATED_GIT_ENV.iter().all(|(own, _)| own != name));
    others
        .chain(ISOLATED_GIT_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

/// Variables that change which programs run, or how they run. A call must not set them.
const RESERVED_PREFIXES: [&str; 8] = [
    "LD_", "BASH", "GIT_", "PYTHON", "PERL", "RUBY", "NODE_", "LANGO_",
];
const RESERVED_VARIABLES: [&str; 8] = [
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "SHELLOPTS",
    "PS4",
    "PAGER",
    "EDITOR",
];
const MAX_NAME_CHARS: usize = 64;

/// Checks the variables that a call sets.
pub fn check_variables(
    variables: BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, ToolError> {
    for (name, value) in &variables {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.len() <= MAX_NAME_CHARS;
        if !is_name {
            return Err(ToolError(format!(
                "`env`: `{name}` is not the name of a variable; use letters, digits and `_`"
            )));
        }
        let is_reserved = RESERVED_VARIABLES.contains(&name.as_str())
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if is_reserved {
            return Err(ToolError(format!(
                "`env`: `{name}` changes how programs run; use another name"
            )));
        }
        if value.contains('\0') {
            return Err(ToolError(format!("`env`: `{name}` has a NUL character")));
        }
    }
    Ok(variables.into_iter().collect())
}

/// Adds variables to an intent. They are part of what runs, so an approval for the line alone does not cover
/// them.
pub fn with_variables(intent: Intent, env: &[(String, String)]) -> Intent {
    if env.is_empty() {
        return intent;
    }
    let set: Vec<String> = env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Intent {
        shows: format!("{}\nwith {}", intent.shows, set.join("\nwith ")),
        subject: format!("{} {}", set.join(" "), intent.subject),
        pattern: None,
        ..intent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_secrets_unless_allowed() {
        let all = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk"),
            ("LC_ALL", "C"),
            ("MY_FLAG", "1"),
            ("LANGO_HOME", "/x"),
        ];
        let all = all
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let names = |allowed: &[String]| -> Vec<String> {
            allowed_variables(&all, allowed, None)
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(
            names(&[]),
            ["GIT_TERMINAL_PROMPT", "LC_ALL", "PAGER", "PATH", "TERM"]
        );
        assert!(names(&["MY_FLAG".to_owned()]).contains(&"MY_FLAG".to_owned()));
    }
}
