//! `lango a2a …`: looking at agents in other processes.

use std::fmt::Write as _;
use std::process::ExitCode;

use lango_remote::{CardReport, InterfaceReport, RemoteAgentSettings, check_card};
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{A2aCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, OutputFormat, styled};

pub fn run(
    global: &GlobalArgs,
    command: &A2aCommand,
    form: OutputFormat,
) -> Result<ExitCode, CliError> {
    let A2aCommand::Check { url } = command;
    let setting = CommandContext::load(global)?;
    let remote = find_remote(&setting, url);
    let checking = check_card(&remote, setting.loaded.settings.net.address_policy());
    let checked = runtime()?.block_on(checking);
    let report = checked
        .map_err(|trouble| CliError::remote(format!("{}: {trouble}", remote.agent_card_url)))?;
    let is_usable = report.uses.is_some();
    let printed = CommandOutput::new(format_report(&report), json!(report)).print(form);
    Ok(if is_usable {
        printed
    } else {
        ExitCode::FAILURE
    })
}

/// The configured agent of that name or address, with its credentials; else just the address.
fn find_remote(setting: &CommandContext, url: &str) -> RemoteAgentSettings {
    let plain = |url: &str| url.trim().trim_end_matches('/').to_owned();
    let is_meant = |remote: &&RemoteAgentSettings| {
        remote.name == url || plain(&remote.agent_card_url) == plain(url)
    };
    let known = setting
        .loaded
        .settings
        .a2a
        .remote_agents
        .iter()
        .find(is_meant);
    known.cloned().unwrap_or_else(|| RemoteAgentSettings {
        agent_card_url: url.to_owned(),
        ..RemoteAgentSettings::default()
    })
}

fn format_report(report: &CardReport) -> String {
    let mut text = format!("{}  {}\n", styled(NAME, &report.name), report.description);
    let provider = report
        .provider
        .as_ref()
        .map_or(String::new(), |provider| format!(" of {provider}"));
    let _ = writeln!(
        text,
        "{}",
        styled(
            DIM,
            format!(
                "version {}{provider}; card at {}",
                report.version, report.url
            )
        )
    );
    let _ = writeln!(text, "\nInterfaces:");
    for interface in &report.interfaces {
        let _ = writeln!(
            text,
            "  {}{}",
            interface_line(interface),
            unusable_note(interface)
        );
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let (streaming, push) = (yes(report.streaming), yes(report.push_notifications));
    let _ = writeln!(
        text,
        "\nStreaming: {streaming}. Push notifications: {push}."
    );
    let auth = if report.auth.is_empty() {
        "none asked for".to_owned()
    } else {
        report.auth.join(", or ")
    };
    let _ = writeln!(text, "Credentials: {auth}.");
    if !report.skills.is_empty() {
        text.push_str("\nSkills:\n");
        for skill in &report.skills {
            let _ = writeln!(
                text,
                "  {}  {}",
                styled(NAME, &skill.name),
                skill.description
            );
        }
    }
    if !report.problems.is_empty() {
        text.push_str("\nProblems:\n");
        for problem in &report.problems {
            let _ = writeln!(text, "  {problem}");
        }
    }
    match &report.uses {
        Some(interface) => {
            let _ = writeln!(text, "\nLango would use {}.", interface_line(interface));
        }
        None => text.push_str("\nLango can use none of its interfaces.\n"),
    }
    text
}

fn interface_line(interface: &InterfaceReport) -> String {
    format!(
        "{} {} at {}",
        interface.binding, interface.version, interface.url
    )
}

fn unusable_note(interface: &InterfaceReport) -> String {
    let why = interface.unusable.as_ref();
    why.map_or(String::new(), |why| {
        format!("  {}", styled(DIM, format!("not used: {why}")))
    })
}
