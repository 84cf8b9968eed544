//! `lango chat`: a conversation at the terminal.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use lango_app::RemoteTeam;
use lango_app::{
    Assistant, AssistantOptions, Recording, RunningScheduler, Toolset, TurnSpec, UserRequest,
    connect_remote_agents, new_session, refresh_in_background,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKey, SessionKeyRef};
use lango_domain::usage::UsageSummary;
use lango_text::sanitize::one_line;
use rustyline::error::ReadlineError;
use rustyline::{DefaultEditor, ExternalPrinter as _};

use super::automate::start_scheduler;
use super::inbox::{announce_unread, watch_inbox};
use super::usage;
use super::{CommandContext, ask, multi_thread_runtime};
use crate::approver::approver;
use crate::args::GlobalArgs;
use crate::attachments::{attach_files, mentioned_files};
use crate::output::{CliError, DIM, NAME, OutputFormat, styled};
use crate::turn_printer::TurnPrinter;

const HELP: &str = "@FILE or @\"A FILE\"  attach a file    /new  new session    /sessions  sessions of this chat    /agents  the team    /usage  tokens and cost    /quit";

/// The file of the input history.
pub const HISTORY_FILE: &str = "history";

/// Runs the chat. `resume` is the id of the session to resume, or empty for the last one.
pub fn run(global: &GlobalArgs, resume: Option<&str>, yes: bool) -> Result<ExitCode, CliError> {
    let context = CommandContext::load(global)?;
    let toolset = context.terminal_toolset()?;
    let remote_agents =
        connect_remote_agents(&context.loaded, &context.environment, toolset.generation())?;
    refresh_in_background(&remote_agents);
    let generation = toolset.generation().current();
    let assistant = open_assistant(&context, &toolset, yes, remote_agents)?;
    let printer = TurnPrinter::new(global.json, false);
    printer.print_warnings(&assistant.warnings);
    printer.print_warnings(&toolset.warnings());
    print_notice(&format!(
        "{} uses {}. {}",
        styled(NAME, "Lango"),
        styled(NAME, &assistant.model_name),
        styled(DIM, HELP)
    ));
    let runtime = multi_thread_runtime()?;
    runtime.block_on(announce_unread(&assistant.stores, global.json));
    let session = match resume {
        Some(session_name) => runtime.block_on(find_session(&assistant, session_name))?,
        None => new_session(),
    };
    let mut chat = ChatLoop {
        sessions: vec![session],
        toolset,
        generation,
        context: &context,
        assistant,
        runtime,
        json: global.json,
        exit: 0,
    };
    if resume.is_some() {
        chat.resume_interrupted();
    }
    let mut lines = LineReader::open(&context)?;
    let scheduler = match lines.message_printer() {
        Some(printer) => Some(chat.start_scheduler(printer)?),
        None => None,
    };
    while let Some(line) = lines.next() {
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            command if command.starts_with('/') => chat.run_command(command),
            request => match lines.request(request) {
                Ok(request) => chat.answer(request),
                Err(error) => _ = error.print(OutputFormat::Plain),
            },
        }
    }
    if let Some(scheduler) = scheduler {
        chat.runtime.block_on(scheduler.stop());
    }
    chat.runtime
        .block_on(super::wait_for_hooks(&chat.assistant));
    chat.runtime
        .block_on(super::apply_retention(&context, &chat.assistant));
    Ok(ExitCode::from(chat.exit))
}

struct ChatLoop<'a> {
    context: &'a CommandContext,
    toolset: Toolset,
    /// The generation of the tools when the assistant was opened.
    generation: u64,
    assistant: Assistant,
    /// The last one is the current session.
    sessions: Vec<SessionId>,
    runtime: tokio::runtime::Runtime,
    json: bool,
    /// The exit code of the last turn.
    exit: u8,
}

impl ChatLoop<'_> {
    fn session(&self) -> SessionId {
        self.sessions.last().cloned().unwrap_or_else(new_session)
    }

    /// Starts the scheduler, as long as the chat is open, and shows messages as they arrive.
    fn start_scheduler(
        &self,
        printer: impl FnMut(String) + Send + 'static,
    ) -> Result<RunningScheduler, CliError> {
        let _inside = self.runtime.enter();
        let stores = self.assistant.stores.clone();
        self.runtime
            .spawn(async move { watch_inbox(&stores, printer).await });
        start_scheduler(self.context, &self.assistant, &self.toolset, "lango chat")
    }

    fn answer(&mut self, mut request: UserRequest) {
        self.apply_changes();
        for warning in request.adapt_to(self.assistant.readable) {
            print_notice(&warning);
        }
        let request = request.into_turn(self.session(), Principal::local());
        self.run_turn(TurnSpec::request(request));
    }

    fn run_turn(&mut self, spec: TurnSpec) {
        let mut printer = TurnPrinter::new(self.json, false);
        let turn = ask::run_turn(&self.assistant, spec, &mut printer);
        match self.runtime.block_on(turn) {
            Ok(()) => self.exit = printer.exit_code(),
            Err(error) => {
                error.print(OutputFormat::Plain);
                self.exit = 1;
            }
        }
    }

    /// Rebuilds the team if skills or remote agents changed since the last turn. Started commands
    /// keep running.
    fn apply_changes(&mut self) {
        let has_new_skills = self.toolset.reload_skills();
        let generation = self.toolset.generation().current();
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        if let Err(error) = self.rebuild_team() {
            error.print(OutputFormat::Plain);
        }
        if has_new_skills {
            TurnPrinter::new(self.json, false).print_warnings(&self.toolset.warnings());
        }
    }

    fn rebuild_team(&mut self) -> Result<(), CliError> {
        let CommandContext {
            environment,
            loaded,
            stores,
        } = self.context;
        let tools = self.context.toolset_tools(&self.toolset)?;
        Ok(self
            .assistant
            .rebuild_team(loaded, environment, stores, tools)?)
    }

    /// Resumes the interrupted turn of the session, if there is one.
    fn resume_interrupted(&mut self) {
        print_notice(&format!("Resuming {}.", self.session()));
        self.run_turn(TurnSpec::resume(SessionKey {
            session: self.session(),
            principal: Principal::local(),
        }));
    }

    fn run_command(&mut self, command: &str) {
        match command {
            "/new" => {
                self.sessions.push(new_session());
                print_notice("Started a new session.");
            }
            "/sessions" => {
                for (index, session) in self.sessions.iter().enumerate() {
                    let mark = if index + 1 == self.sessions.len() {
                        "*"
                    } else {
                        " "
                    };
                    print_notice(&format!("{mark} {session}"));
                }
            }
            "/agents" => print_notice(&self.assistant.agents.join(", ")),
            "/usage" => print_notice(&self.format_usage()),
            _ => print_notice(HELP),
        }
    }

    fn format_usage(&self) -> String {
        let mut summary = UsageSummary::default();
        for session in &self.sessions {
            let key = SessionKeyRef {
                session,
                principal: &Principal::local(),
            };
            let events = self
                .assistant
                .stores
                .sessions
                .load(key, HistoryWindow::Everything);
            let events = self.runtime.block_on(events).unwrap_or_default();
            events.iter().for_each(|event| summary.add(event));
        }
        usage::format_usage(&summary)
    }
}

fn open_assistant(
    context: &CommandContext,
    toolset: &Toolset,
    yes: bool,
    remote_agents: RemoteTeam,
) -> Result<Assistant, CliError> {
    let options = AssistantOptions {
        stores: &context.stores,
        tools: context.toolset_tools(toolset)?,
        catalog: toolset.catalog().clone(),
        approver: approver(yes),
        recording: &Recording::Off,
        secrets: None,
        remote_agents: Some(remote_agents),
    };
    Ok(Assistant::open(
        &context.loaded,
        &context.environment,
        options,
    )?)
}

/// Returns the session with this id, or the last used one if the id is empty.
async fn find_session(assistant: &Assistant, session_name: &str) -> Result<SessionId, CliError> {
    let stores = &assistant.stores;
    if !session_name.is_empty() {
        return Ok(stores
            .catalog
            .session(&Principal::local(), &SessionId::new(session_name))
            .await?
            .id);
    }
    let sessions = stores.catalog.sessions(&Principal::local()).await?;
    let last = sessions.into_iter().next();
    last.map(|session| session.id)
        .ok_or_else(|| CliError::usage("there is no session to resume"))
}

/// The source of requests: a line editor on a terminal, otherwise plain lines.
enum LineReader {
    Editor {
        editor: Box<DefaultEditor>,
        history: Option<std::path::PathBuf>,
    },
    Plain(std::io::Lines<std::io::StdinLock<'static>>),
}

impl LineReader {
    /// Builds a request, with the files that a typed line names. A piped line is not the user's own
    /// text, and names no files.
    fn request(&self, line: &str) -> Result<UserRequest, CliError> {
        match self {
            Self::Editor { .. } => {
                let (mut request, mentioned) = (UserRequest::typed(line), mentioned_files(line));
                attach_files(&mut request, &mentioned.found)?;
                for attachment in &request.attachments {
                    print_notice(&format!("Attached: {}", attachment.placeholder()));
                }
                for path in &mentioned.missing {
                    print_notice(&format!(
                        "There is no file {}; the text is sent as it is.",
                        one_line(path)
                    ));
                }
                Ok(request)
            }
            Self::Plain(_) => Ok(UserRequest {
                piped: Some(line.to_owned()),
                ..UserRequest::default()
            }),
        }
    }

    fn open(context: &CommandContext) -> Result<Self, CliError> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Plain(std::io::stdin().lines()));
        }
        let mut editor = DefaultEditor::new()
            .map_err(|error| CliError::usage(format!("no terminal: {error}")))?;
        let history = context
            .environment
            .config_folder()
            .map(|folder| folder.join(HISTORY_FILE));
        if let Some(history) = &history {
            // The file does not exist the first time.
            let _ = editor.load_history(history);
        }
        Ok(Self::Editor {
            editor: Box::new(editor),
            history,
        })
    }

    /// Returns what prints lines while the user types: above the prompt, which is drawn again. There is none
    /// without a terminal.
    fn message_printer(&mut self) -> Option<impl FnMut(String) + Send + 'static> {
        let mut printer = match self {
            Self::Editor { editor, .. } => editor.create_external_printer().ok(),
            Self::Plain(_) => return None,
        };
        let has_color = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
        Some(move |line: String| {
            let line = match has_color {
                true => line,
                false => strip_str(&line).to_string(),
            };
            let is_printed = printer
                .as_mut()
                .is_some_and(|printer| printer.print(line.clone()).is_ok());
            if !is_printed {
                print_notice(&line);
            }
        })
    }

    fn next(&mut self) -> Option<String> {
        match self {
            Self::Plain(lines) => loop {
                match lines.next()? {
                    Ok(line) => return Some(line),
                    Err(error) => print_notice(&format!("skipped a line: {error}")),
                }
            },
            Self::Editor { editor, history } => {
                let mut interrupts = 0;
                loop {
                    match editor.readline("› ") {
                        Ok(line) => {
                            let _ = editor.add_history_entry(&line);
                            if let Some(history) = history {
                                let _ = history.parent().map(std::fs::create_dir_all);
                                let _ = editor.save_history(history);
                            }
                            return Some(line);
                        }
                        Err(ReadlineError::Interrupted) if interrupts == 0 => {
                            interrupts += 1;
                            print_notice("press Ctrl-C again or type /quit to exit");
                        }
                        Err(_) => return None,
                    }
                }
            }
        }
    }
}

/// Prints a message of the chat itself. In a pipe it goes to stderr, since stdout holds only
/// answers.
fn print_notice(text: &str) {
    if std::io::stdout().is_terminal() {
        anstream::println!("{}", text.trim_end());
    } else {
        anstream::eprintln!("{}", text.trim_end());
    }
}
