//! `lango ask`: one request, one turn.

use std::io::Read as _;
use std::process::ExitCode;

use futures::StreamExt;
use lango_app::{
    Assistant, AssistantOptions, Recorder, Recording, Replayer, Strictness, UserRequest,
    known_secrets,
};
use lango_domain::Tool;
use lango_domain::event::{Principal, SessionId, Update};
use lango_engine::TurnStream;

use super::{CommandContext, parse_session, runtime};
use crate::approver::approver;
use crate::args::{AskArgs, GlobalArgs};
use crate::output::CliError;
use crate::turn_printer::TurnPrinter;

/// No model reads more, and a pipe may never end.
const MAX_STDIN_BYTES: u64 = 4 * 1024 * 1024;

pub fn run(global: &GlobalArgs, ask: &AskArgs) -> Result<ExitCode, CliError> {
    let setting = CommandContext::load(global)?;
    if ask.r#continue {
        return continue_turn(global, &setting, ask);
    }
    let tape = open_recording(&setting, ask)?;
    let (session, request) = match &tape {
        Recording::Replay(player) if ask.text.is_empty() => (player.session(), player.request()),
        Recording::Replay(player) => (player.session(), parse_request(&ask.text)?),
        _ => (
            parse_session(ask.session.as_deref())?,
            parse_request(&ask.text)?,
        ),
    };
    let tools = setting.tools(&ask.tools)?;
    let conversation = open_assistant(&setting, ask, tools, &tape)?;
    if let Recording::Record(recorder) = &tape {
        recorder
            .start(&session, &request)
            .map_err(|error| CliError::usage(error.to_string()))?;
    }
    let mut show = TurnPrinter::new(global.json, ask.deltas);
    show.print_warnings(&conversation.warnings);
    let runtime = runtime()?;
    runtime.block_on(run_turn(&conversation, session, request, &mut show));
    runtime.block_on(super::wait_for_hooks(&conversation));
    runtime.block_on(super::apply_retention(&setting, &conversation));
    let complaints = tape.problems();
    show.print_warnings(&complaints);
    show.print_warnings(&super::damage_warnings(&conversation.store));
    let is_strict = matches!(&tape, Recording::Replay(player) if player.is_strict());
    if is_strict && !complaints.is_empty() {
        show.fail_with(3);
    }
    Ok(show.finish())
}

fn open_assistant(
    setting: &CommandContext,
    ask: &AskArgs,
    tools: Vec<Tool>,
    tape: &Recording,
) -> Result<Assistant, CliError> {
    let (stores, approver) = (&setting.store, approver(ask.yes));
    let means = AssistantOptions {
        store: stores,
        tools,
        approver,
        recording: tape,
        remote_agents: None,
    };
    Ok(Assistant::open(
        &setting.loaded,
        &setting.environment,
        means,
    )?)
}

/// The turn that a session's last process did not finish.
fn continue_turn(
    global: &GlobalArgs,
    setting: &CommandContext,
    ask: &AskArgs,
) -> Result<ExitCode, CliError> {
    let session = parse_session(ask.session.as_deref())?;
    let tools = setting.tools(&ask.tools)?;
    let conversation = open_assistant(setting, ask, tools, &Recording::Off)?;
    let runtime = runtime()?;
    let unfinished = runtime.block_on(async {
        conversation
            .store
            .session(&Principal::local(), &session)
            .await?;
        let found = conversation
            .runner
            .find_unfinished_turn(&session, &Principal::local())
            .await;
        found.map_err(|error| CliError::store(error.to_string()))
    })?;
    if unfinished.is_none() {
        return Err(CliError::usage(format!(
            "the last turn of `{session}` came to its end; there is nothing to go on with"
        )));
    }
    let mut show = TurnPrinter::new(global.json, ask.deltas);
    show.print_warnings(&conversation.warnings);
    runtime.block_on(resume_turn(&conversation, session, &mut show));
    runtime.block_on(super::wait_for_hooks(&conversation));
    Ok(show.finish())
}

fn open_recording(setting: &CommandContext, ask: &AskArgs) -> Result<Recording, CliError> {
    if let Some(file) = &ask.record {
        let secrets = known_secrets(&setting.loaded, &setting.environment);
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

/// One turn, shown as it comes. The first Ctrl-C cancels it, the second leaves.
pub async fn run_turn(
    conversation: &Assistant,
    session: SessionId,
    request: UserRequest,
    show: &mut TurnPrinter,
) {
    let updates = conversation
        .runner
        .run(request.into_turn(session, Principal::local()));
    print_turn(updates, show).await;
    conversation.remote_agents.wait_for_cancellations().await;
}

/// The rest of a turn that was interrupted.
pub async fn resume_turn(conversation: &Assistant, session: SessionId, show: &mut TurnPrinter) {
    print_turn(
        conversation.runner.resume(session, Principal::local()),
        show,
    )
    .await;
    conversation.remote_agents.wait_for_cancellations().await;
}

async fn print_turn(mut updates: TurnStream, show: &mut TurnPrinter) {
    let mut interrupts = 0;
    loop {
        tokio::select! {
            biased;
            update = updates.next() => match update {
                Some(Update::Delta { author, text }) => show.print_delta(&author, &text),
                Some(Update::ToolOutputDelta { author, call, text }) => show.print_tool_output(&author, &call, &text),
                Some(Update::Event(event)) => show.print_event(&event),
                Some(Update::StoreFailed(error)) => show.print_store_error(&error),
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

/// The words that were typed; `-` among them stands for what is piped in.
fn parse_request(words: &[String]) -> Result<UserRequest, CliError> {
    let typed: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "-")
        .collect();
    let mut request = UserRequest::typed(typed.join(" ").trim());
    if words.iter().any(|word| word == "-") {
        let mut piped = Vec::new();
        std::io::stdin()
            .take(MAX_STDIN_BYTES + 1)
            .read_to_end(&mut piped)
            .map_err(|error| CliError::usage(format!("cannot read what is piped in: {error}")))?;
        if piped.len() as u64 > MAX_STDIN_BYTES {
            return Err(CliError::usage(format!(
                "what is piped in is longer than {MAX_STDIN_BYTES} bytes"
            )));
        }
        let piped = String::from_utf8(piped)
            .map_err(|_| CliError::usage("what is piped in is not valid UTF-8"))?;
        request.piped = Some(piped.trim_end().to_owned()).filter(|piped| !piped.trim().is_empty());
    }
    if request.text.is_empty() && request.piped.is_none() {
        return Err(
            CliError::usage("the request is empty").with_hint("lango ask \"what should be done\"")
        );
    }
    Ok(request)
}
