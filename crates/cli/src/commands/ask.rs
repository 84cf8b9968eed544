//! `lango ask`: one request, one turn.

use std::io::Read as _;
use std::process::ExitCode;

use futures::StreamExt;
use lango_app::capability::automation::planning::SharedCatalog;
use lango_app::{
    Assistant, AssistantOptions, Recorder, Recording, Replayer, Strictness, TurnHandle, TurnSpec,
    UserRequest, known_secrets,
};
use lango_domain::event::{Principal, Update};
use lango_domain::session::SessionKey;

use super::inbox::announce_unread;
use super::{CommandContext, parse_session, runtime};
use crate::approver::approver;
use crate::args::{AskArgs, GlobalArgs};
use crate::attachments::attach_files;
use crate::output::CliError;
use crate::turn_printer::TurnPrinter;

/// The maximum size of standard input. No model reads more, and a pipe may never end.
const MAX_STDIN_BYTES: u64 = 4 * 1024 * 1024;

pub fn run(global: &GlobalArgs, ask: &AskArgs) -> Result<ExitCode, CliError> {
    let context = CommandContext::load(global)?;
    if ask.r#continue {
        return continue_turn(global, &context, ask);
    }
    let recording = open_recording(&context, ask)?;
    let (session, mut request) = match &recording {
        Recording::Replay(replayer) if ask.text.is_empty() => {
            (replayer.session(), replayer.request())
        }
        Recording::Replay(replayer) => (replayer.session(), parse_request(ask)?),
        _ => (parse_session(ask.session.as_deref())?, parse_request(ask)?),
    };
    let assistant = open_assistant(&context, ask, &recording)?;
    let file_warnings = match &recording {
        Recording::Replay(_) => Vec::new(),
        Recording::Off | Recording::Record(_) => request.adapt_to(assistant.readable),
    };
    let runtime = runtime()?;
    if let Recording::Record(recorder) = &recording {
        let learned = runtime.block_on(assistant.prepare_recorder(recorder, &Principal::local()));
        learned.map_err(|error| CliError::usage(error.to_string()))?;
        recorder
            .start(&session, &request)
            .map_err(|error| CliError::usage(error.to_string()))?;
    }
    let mut printer = TurnPrinter::new(global.json, ask.deltas);
    printer.print_warnings(&assistant.warnings);
    printer.print_warnings(&file_warnings);
    let spec = TurnSpec::request(request.into_turn(session, Principal::local()));
    runtime.block_on(run_turn(&assistant, spec, &mut printer))?;
    printer.print_offline_note();
    runtime.block_on(super::wait_for_hooks(&assistant));
    runtime.block_on(super::apply_retention(&context, &assistant));
    let problems = recording.problems();
    printer.print_warnings(&problems);
    printer.print_warnings(&super::damage_warnings(&assistant.stores));
    runtime.block_on(announce_unread(&assistant.stores, global.json));
    let is_strict = matches!(&recording, Recording::Replay(replayer) if replayer.is_strict());
    if is_strict && !problems.is_empty() {
        printer.fail_with(3);
    }
    Ok(printer.finish())
}

fn open_assistant(
    context: &CommandContext,
    ask: &AskArgs,
    recording: &Recording,
) -> Result<Assistant, CliError> {
    let (tools, catalog) = match ask.tools.tools {
        None => {
            let toolset = context.toolset()?;
            (context.toolset_tools(&toolset)?, toolset.catalog().clone())
        }
        Some(_) => (context.tools(&ask.tools)?, SharedCatalog::default()),
    };
    let options = AssistantOptions {
        stores: &context.stores,
        tools,
        catalog,
        approver: approver(ask.yes),
        recording,
        secrets: None,
        remote_agents: None,
    };
    Ok(Assistant::open(
        &context.loaded,
        &context.environment,
        options,
    )?)
}

/// Continues the turn that the last process of the session did not finish.
fn continue_turn(
    global: &GlobalArgs,
    context: &CommandContext,
    ask: &AskArgs,
) -> Result<ExitCode, CliError> {
    let key = SessionKey {
        session: parse_session(ask.session.as_deref())?,
        principal: Principal::local(),
    };
    let assistant = open_assistant(context, ask, &Recording::Off)?;
    let runtime = runtime()?;
    let unfinished_turn = runtime.block_on(async {
        assistant
            .stores
            .catalog
            .session(&key.principal, &key.session)
            .await?;
        let turn = assistant.runtime.find_unfinished_turn(&key).await;
        turn.map_err(|error| CliError::store(error.to_string()))
    })?;
    if unfinished_turn.is_none() {
        return Err(CliError::usage(format!(
            "the last turn of `{}` is finished; there is nothing to continue",
            key.session
        )));
    }
    let mut printer = TurnPrinter::new(global.json, ask.deltas);
    printer.print_warnings(&assistant.warnings);
    runtime.block_on(run_turn(&assistant, TurnSpec::resume(key), &mut printer))?;
    runtime.block_on(super::wait_for_hooks(&assistant));
    Ok(printer.finish())
}

fn open_recording(context: &CommandContext, ask: &AskArgs) -> Result<Recording, CliError> {
    if let Some(file) = &ask.record {
        let secrets = known_secrets(&context.loaded, &context.environment);
        return Ok(Recording::Record(
            Recorder::create(file, secrets).map_err(|error| CliError::usage(error.to_string()))?,
        ));
    }
    let Some(file) = &ask.replay else {
        return Ok(Recording::Off);
    };
    let strictness = if ask.replay_loose {
        Strictness::Loose
    } else {
        Strictness::Strict
    };
    Ok(Recording::Replay(
        Replayer::open(file, strictness).map_err(|error| CliError::usage(error.to_string()))?,
    ))
}

/// Runs one turn and prints its updates. The first Ctrl-C cancels it, the second exits.
pub async fn run_turn(
    assistant: &Assistant,
    spec: TurnSpec,
    printer: &mut TurnPrinter,
) -> Result<(), CliError> {
    let turn = assistant.runtime.start_turn(spec);
    let turn = turn.map_err(|error| CliError::usage(error.to_string()))?;
    print_turn(turn, printer).await;
    assistant.remote_agents.wait_for_cancellations().await;
    Ok(())
}

async fn print_turn(mut updates: TurnHandle, printer: &mut TurnPrinter) {
    let mut interrupts = 0;
    loop {
        tokio::select! {
            biased;
            update = updates.next() => match update {
                Some(Update::Delta { author, text }) => printer.print_delta(&author, &text),
                Some(Update::ToolOutputDelta { author, call, text }) => printer.print_tool_output(&author, &call, &text),
                Some(Update::Event(event)) => printer.print_event(&event),
                Some(Update::StoreFailed(error)) => printer.print_store_error(&error),
                None => return,
            },
            Ok(()) = tokio::signal::ctrl_c() => {
                interrupts += 1;
                if interrupts > 1 {
                    std::process::exit(130);
                }
                updates.cancel();
            }
        }
    }
}

/// Joins the arguments into a request; `-` reads standard input. Adds the attached files.
fn parse_request(ask: &AskArgs) -> Result<UserRequest, CliError> {
    let arguments = &ask.text;
    let text: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| *argument != "-")
        .collect();
    let mut request = UserRequest::typed(text.join(" ").trim());
    if arguments.iter().any(|argument| argument == "-") {
        let mut piped = Vec::new();
        std::io::stdin()
            .take(MAX_STDIN_BYTES + 1)
            .read_to_end(&mut piped)
            .map_err(|error| CliError::usage(format!("cannot read standard input: {error}")))?;
        if piped.len() as u64 > MAX_STDIN_BYTES {
            return Err(CliError::usage(format!(
                "standard input is longer than {MAX_STDIN_BYTES} bytes"
            )));
        }
        let piped = String::from_utf8(piped)
            .map_err(|_| CliError::usage("standard input is not valid UTF-8"))?;
        request.piped = Some(piped.trim_end().to_owned()).filter(|piped| !piped.trim().is_empty());
    }
    attach_files(&mut request, &ask.attach)?;
    if request.is_empty() {
        return Err(CliError::usage("the request is empty")
            .with_hint("for example `lango ask \"list the files\"`"));
    }
    Ok(request)
}
