//! What a command sees of the environment: a few names that are known to hold no secret, and those that were allowed.

use std::collections::BTreeMap;
use std::path::Path;

const DEFAULT_VARIABLES: [&str; 11] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "EDITOR",
    "HOSTNAME",
];
const DEFAULT_PREFIX: &str = "LC_";

/// `temp` is the command's own folder for whatever it keeps for a moment.
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
    // Nobody sits at a terminal: nothing may wait for a key.
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
        // Git gives up on settings that it may not read.
        visible
            .entry("GIT_CONFIG_GLOBAL".to_owned())
            .or_insert_with(|| "/dev/null".to_owned());
    }
    visible.into_iter().collect()
}

/// Git is told not to start what it could not start anyway: it would complain, or give up.
const ISOLATED_GIT_ENV: [(&str, &str); 8] = [
    // Looking at the state writes nothing, so no hook has a reason to run.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
];

/// For a command that may start no other program.
pub fn isolate_git(env: Vec<(String, String)>) -> Vec<(String, String)> {
    let kept = env
        .into_iter()
        .filter(|(name, _)| ISOLATED_GIT_ENV.iter().all(|(own, _)| own != name));
    kept.chain(ISOLATED_GIT_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_outside_unless_they_are_named() {
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
