//! `lango a2a …`: inspects remote agents.

use std::fmt::Write as _;
use std::process::ExitCode;

use lango_app::{CardReport, InterfaceReport, RemoteAgentSettings, check_card};
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{A2aCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, OutputFormat, styled};

pub fn run(
    global: &GlobalArgs,
    command: &A2aCommand,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let A2aCommand::Check { url } = command;
    let context = CommandContext::load(global)?;
    let remote = find_remote(&context, url);
    let check = check_card(&remote, context.loaded.settings.net.address_policy());
    let result = runtime()?.block_on(check);
    let report =
        result.map_err(|error| CliError::remote(format!("{}: {error}", remote.agent_card_url)))?;
    let is_usable = report.uses.is_some();
    let printed = CommandOutput::new(format_report(&report), json!(report)).print(format);
    Ok(if is_usable {
        printed
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the configured agent with this name or URL, with its credentials, or else only the URL.
fn find_remote(context: &CommandContext, url: &str) -> RemoteAgentSettings {
    let plain = |url: &str| url.trim().trim_end_matches('/').to_owned();
    let is_meant = |remote: &&RemoteAgentSettings| {
        remote.name == url || plain(&remote.agent_card_url) == plain(url)
    };
    let configured = context
        .loaded
        .settings
        .a2a
        .remote_agents
        .iter()
        .find(is_meant);
    configured.cloned().unwrap_or_else(|| RemoteAgentSettings {
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
    let yes_or_no = |flag: bool| if flag { "yes" } else { "no" };
    let (streaming, push) = (
        yes_or_no(report.streaming),
        yes_or_no(report.push_notifications),
    );
    let _ = writeln!(
        text,
        "\nStreaming: {streaming}. Push notifications: {push}."
    );
    let auth = if report.auth.is_empty() {
        "none required".to_owned()
    } else {
        report.auth.join(", or ")
    };
    let _ = writeln!(text, "Credentials: {auth}.");
    text.push_str(&skills_and_problems(report));
    match &report.uses {
        Some(interface) => {
            let _ = writeln!(text, "\nLango would use {}.", interface_line(interface));
        }
        None => text.push_str("\nLango can use none of its interfaces.\n"),
    }
    text
}

fn skills_and_problems(report: &CardReport) -> String {
    let mut text = String::new();
    if !report.skills.is_empty() {
        text.push_str("\nSkills:\n");
    }
    for skill in &report.skills {
        let name = styled(NAME, &skill.name);
        let _ = writeln!(text, "  {name}  {}", skill.description);
    }
    if !report.problems.is_empty() {
        text.push_str("\nProblems:\n");
    }
    for problem in &report.problems {
        let _ = writeln!(text, "  {problem}");
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
    let reason = interface.unusable.as_ref();
    reason.map_or(String::new(), |reason| {
        format!("  {}", styled(DIM, format!("not used: {reason}")))
    })
}
