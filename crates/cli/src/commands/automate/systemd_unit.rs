//! `lango automate install`: a systemd user unit that runs the scheduler.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use lango_app::Environment;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::commands::CommandContext;
use crate::output::{CliError, CommandOutput, DIM, styled};

const UNIT_NAME: &str = "lango-automate.service";
/// Marks files that this command wrote and may replace.
const MARKER: &str = "# Written by `lango automate install`";
/// The file of variables, such as API keys, in the configuration folder.
const VARIABLES_FILE: &str = "automate.env";

pub fn install(global: &GlobalArgs, print: bool) -> Result<CommandOutput, CliError> {
    // A configuration that does not load would fail in the unit, too.
    let context = CommandContext::load(global)?;
    let unit = unit_text(global, &context.environment)?;
    if print {
        let json = json!({ "unit": unit, "file": null, "written": false });
        return Ok(CommandOutput::new(unit, json));
    }
    let file = unit_file(&context.environment)?;
    write_unit(&file, &unit)?;
    let commands = [
        "systemctl --user daemon-reload".to_owned(),
        format!("systemctl --user enable --now {UNIT_NAME}"),
        "loginctl enable-linger".to_owned(),
    ];
    let [reload, enable, linger] = &commands;
    let note = |text: &str| styled(DIM, text);
    let mut plain = format!(
        "Wrote {}. Start it with:\n  {reload}\n  {enable}\n",
        file.display()
    );
    plain.push_str(&format!(
        "  {linger}  {}\n",
        note("(to run it while you are logged out)")
    ));
    if let Some(folder) = context.environment.config_folder() {
        let variables = folder.join(VARIABLES_FILE);
        plain.push_str(&format!(
            "{}\n",
            note(&format!(
                "Variables such as API keys belong in {} (NAME=value lines). \
                 `journalctl --user -u {UNIT_NAME} -f` shows what it does.",
                variables.display()
            ))
        ));
    }
    let json = json!({ "unit": unit, "file": file.display().to_string(), "written": true, "enable": commands });
    Ok(CommandOutput::new(plain, json))
}

fn unit_file(environment: &Environment) -> Result<PathBuf, CliError> {
    let base = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(environment.get("HOME")?).join(".config")));
    let base = base.filter(|base| base.is_absolute()).ok_or_else(|| {
        CliError::usage("there is no folder for systemd user units")
            .with_hint("set HOME or XDG_CONFIG_HOME, or use --print and place the unit yourself")
    })?;
    Ok(base.join("systemd/user").join(UNIT_NAME))
}

/// Writes the unit, and replaces only a file that this command wrote.
fn write_unit(file: &Path, unit: &str) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        CliError::usage(format!("cannot write {}: {error}", file.display()))
            .with_hint("use --print and place the unit yourself")
    };
    match fs::read(file) {
        Ok(existing) if !existing.starts_with(MARKER.as_bytes()) => {
            let message = format!(
                "{} exists and was not written by this command",
                file.display()
            );
            return Err(CliError::usage(message)
                .with_hint("move it away, or change it with `systemctl --user edit`"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // A new file next to it, so that the unit is never half written.
    let temporary = file.with_extension("service.new");
    let write = || {
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut opened = options.open(&temporary)?;
        opened.set_permissions(fs::Permissions::from_mode(0o600))?;
        opened.write_all(unit.as_bytes())?;
        opened.sync_all()?;
        fs::rename(&temporary, file)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

/// Returns the unit. It runs this binary with the configuration of this call.
fn unit_text(global: &GlobalArgs, environment: &Environment) -> Result<String, CliError> {
    let binary = std::env::current_exe().map_err(|error| {
        CliError::usage(format!("cannot find the path of this program: {error}"))
    })?;
    // Variables are not replaced in the path of the program.
    let mut command = vec![quoted(&path_text(&binary)?, false)?];
    for word in global_arguments(global, environment)? {
        command.push(quoted(&word, true)?);
    }
    command.extend(["automate".to_owned(), "run".to_owned()]);
    let mut variables = String::new();
    for name in ["LANGO_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        if let Some(value) = environment.get(name) {
            // A relative path would mean another folder for the unit.
            let value = path_text(&environment.working_folder.join(value))?;
            variables.push_str(&format!(
                "Environment={}\n",
                quoted(&format!("{name}={value}"), false)?
            ));
        }
    }
    if let Some(folder) = environment.config_folder() {
        let file = path_text(&folder.join(VARIABLES_FILE))?;
        variables.push_str(&format!("EnvironmentFile=-{}\n", escaped_path(&file)?));
    }
    let folder = escaped_path(&path_text(&environment.working_folder)?)?;
    Ok(format!(
        "{MARKER}; run it again to change this file.
[Unit]
Description=Lango: schedules, background tasks and workflows

[Service]
Type=exec
ExecStart={}
WorkingDirectory={folder}
{variables}Restart=on-failure
RestartSec=10
# The first signal suspends running work.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=60
# Commands of agents run in a sandbox of their own, which needs namespaces.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
KeyringMode=private
UMask=0077
LimitCORE=0

[Install]
WantedBy=default.target
",
        command.join(" ")
    ))
}

/// Returns the arguments of this call that choose the configuration.
fn global_arguments(
    global: &GlobalArgs,
    environment: &Environment,
) -> Result<Vec<String>, CliError> {
    let mut arguments = Vec::new();
    if let Some(config) = &global.config {
        let config = path_text(&environment.working_folder.join(config))?;
        arguments.extend(["--config".to_owned(), config]);
    }
    if let Some(workspace) = &global.workspace {
        let workspace = path_text(&environment.working_folder.join(workspace))?;
        arguments.extend(["--workspace".to_owned(), workspace]);
    }
    for (name, value) in [("--provider", &global.provider), ("--model", &global.model)] {
        if let Some(value) = value {
            arguments.extend([name.to_owned(), value.clone()]);
        }
    }
    for value in &global.set {
        arguments.extend(["--set".to_owned(), value.clone()]);
    }
    Ok(arguments)
}

fn path_text(path: &Path) -> Result<String, CliError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::usage(format!("the path {} is not valid UTF-8", path.display()))
            .with_hint("systemd units hold UTF-8 only; move it to another folder")
    })
}

/// Quotes a word for systemd. In a command, `$` would name a variable.
fn quoted(word: &str, in_command: bool) -> Result<String, CliError> {
    check_line(word)?;
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '$' if in_command => text.push_str("$$"),
            c => text.push(c),
        }
    }
    text.push('"');
    Ok(text)
}

/// Escapes a path that systemd reads to the end of the line.
fn escaped_path(path: &str) -> Result<String, CliError> {
    check_line(path)?;
    Ok(path.replace('%', "%%"))
}

fn check_line(text: &str) -> Result<(), CliError> {
    match text.chars().any(char::is_control) {
        false => Ok(()),
        true => Err(
            CliError::usage("a path or setting contains line ends or control characters")
                .with_hint("systemd units cannot hold them"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_meaning_in_a_unit() {
        assert_eq!(quoted("a b", true).unwrap(), "\"a b\"");
        assert_eq!(
            quoted(r#"x="1" 5% $HOME \n"#, true).unwrap(),
            r#""x=\"1\" 5%% $$HOME \\n""#
        );
        assert_eq!(quoted("$HOME", false).unwrap(), "\"$HOME\"");
        assert!(quoted("a\nExecStart=/bin/evil", true).is_err());
        assert!(escaped_path("/a\n").is_err());
        assert_eq!(escaped_path("/a b/50%").unwrap(), "/a b/50%%");
    }
}
