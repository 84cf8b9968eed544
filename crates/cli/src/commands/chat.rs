//! `lango chat`: a conversation at the terminal.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use lango_app::{
    Assistant, AssistantOptions, Recording, Toolset, UserRequest, connect_remote_agents,
    new_session, refresh_in_background,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::usage::UsageSummary;
use lango_remote::RemoteTeam;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::usage;
use super::{CommandContext, ask, multi_thread_runtime};
use crate::approver::approver;
use crate::args::GlobalArgs;
use crate::output::{CliError, DIM, NAME, OutputFormat, styled};
use crate::turn_printer::TurnPrinter;

const HELP: &str = "/new  a new session    /sessions  those of this chat    /agents  the team    /usage  the bill    /quit";

/// The file that typed lines are kept in.
pub const HISTORY_FILE: &str = "history";

/// `resume` names the session to go on with; the last one when it is empty.
pub fn run(global: &GlobalArgs, resume: Option<&str>, yes: bool) -> Result<ExitCode, CliError> {
    let setting = CommandContext::load(global)?;
    let hands = setting.toolset()?;
    let colleagues = connect_remote_agents(&setting.loaded, &setting.environment)?;
    refresh_in_background(&colleagues);
    let generation = colleagues.generation();
    let conversation = open_assistant(&setting, &hands, yes, colleagues)?;
    let show = TurnPrinter::new(global.json, false);
    show.print_warnings(&conversation.warnings);
    show.print_warnings(&hands.warnings());
    print_notice(&format!(
        "{} asks {}. {}",
        styled(NAME, "Lango"),
        styled(NAME, &conversation.model_name),
        styled(DIM, HELP)
    ));
    let runtime = multi_thread_runtime()?;
    let session = match resume {
        Some(named) => runtime.block_on(find_session(&conversation, named))?,
        None => new_session(),
    };
    let mut chat = ChatLoop {
        sessions: vec![session],
        toolset: hands,
        generation,
        yes,
        context: &setting,
        assistant: conversation,
        runtime,
        json: global.json,
        exit: 0,
    };
    if resume.is_some() {
        chat.resume_interrupted();
    }
    let mut lines = LineReader::open(&setting)?;
    while let Some(line) = lines.next() {
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            command if command.starts_with('/') => chat.run_command(command),
            request => chat.run_turn(lines.request(request)),
        }
    }
    chat.runtime
        .block_on(super::wait_for_hooks(&chat.assistant));
    chat.runtime
        .block_on(super::apply_retention(&setting, &chat.assistant));
    Ok(ExitCode::from(chat.exit))
}

struct ChatLoop<'a> {
    context: &'a CommandContext,
    toolset: Toolset,
    /// Of the colleagues elsewhere, when the conversation was opened.
    generation: u64,
    /// Whether nothing is asked about.
    yes: bool,
    assistant: Assistant,
    /// The last is the one in use.
    sessions: Vec<SessionId>,
    runtime: tokio::runtime::Runtime,
    json: bool,
    /// What the last turn deserves.
    exit: u8,
}

impl ChatLoop<'_> {
    fn session(&self) -> SessionId {
        self.sessions.last().cloned().unwrap_or_else(new_session)
    }

    fn run_turn(&mut self, request: UserRequest) {
        let mut show = TurnPrinter::new(self.json, false);
        self.apply_changes(&show);
        self.runtime.block_on(ask::run_turn(
            &self.assistant,
            self.session(),
            request,
            &mut show,
        ));
        self.exit = show.exit_code();
    }

    /// A skill that was made or changed, and an agent elsewhere that can be reached now, are there from the next turn on;
    /// commands that were started run on.
    fn apply_changes(&mut self, show: &TurnPrinter) {
        let colleagues = self.assistant.remote_agents.clone();
        let generation = colleagues.generation();
        let has_new_skills = self.toolset.reload_skills();
        if !has_new_skills && generation == self.generation {
            return;
        }
        self.generation = generation;
        match open_assistant(self.context, &self.toolset, self.yes, colleagues) {
            Ok(conversation) => self.assistant = conversation,
            Err(failure) => _ = failure.print(OutputFormat::Plain),
        }
        if has_new_skills {
            show.print_warnings(&self.toolset.warnings());
        }
    }

    /// Goes on with a turn that was interrupted, if there is one.
    fn resume_interrupted(&mut self) {
        let mut show = TurnPrinter::new(self.json, false);
        print_notice(&format!("Going on with {}.", self.session()));
        self.runtime
            .block_on(ask::resume_turn(&self.assistant, self.session(), &mut show));
        self.exit = show.exit_code();
    }

    fn run_command(&mut self, command: &str) {
        match command {
            "/new" => {
                self.sessions.push(new_session());
                print_notice("A new session begins.");
            }
            "/sessions" => {
                for (at, session) in self.sessions.iter().enumerate() {
                    let mark = if at + 1 == self.sessions.len() {
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
        let mut bill = UsageSummary::default();
        for session in &self.sessions {
            let key = SessionKeyRef {
                session,
                principal: &Principal::local(),
            };
            let events = self.assistant.store.load(key, HistoryWindow::Everything);
            let events = self.runtime.block_on(events).unwrap_or_default();
            events.iter().for_each(|event| bill.add(event));
        }
        usage::format_usage(&bill)
    }
}

fn open_assistant(
    setting: &CommandContext,
    hands: &Toolset,
    yes: bool,
    colleagues: RemoteTeam,
) -> Result<Assistant, CliError> {
    let (tools, approver) = (setting.toolset_tools(hands)?, approver(yes));
    let (stores, colleagues) = (&setting.store, Some(colleagues));
    let means = AssistantOptions {
        store: stores,
        tools,
        approver,
        recording: &Recording::Off,
        remote_agents: colleagues,
    };
    Ok(Assistant::open(
        &setting.loaded,
        &setting.environment,
        means,
    )?)
}

/// The session that is meant: the one of that id, or the one used last.
async fn find_session(conversation: &Assistant, named: &str) -> Result<SessionId, CliError> {
    let store = &conversation.store;
    if !named.is_empty() {
        return Ok(store
            .session(&Principal::local(), &SessionId::new(named))
            .await?
            .id);
    }
    let sessions = store.sessions(&Principal::local()).await?;
    let last = sessions.into_iter().next();
    last.map(|session| session.id)
        .ok_or_else(|| CliError::usage("there is no session to go on with"))
}

/// Where requests come from: an editor on a terminal, plain lines elsewhere.
enum LineReader {
    Editor {
        editor: Box<DefaultEditor>,
        history: Option<std::path::PathBuf>,
    },
    Plain(std::io::Lines<std::io::StdinLock<'static>>),
}

impl LineReader {
    /// What comes over a pipe is not in the user's own words.
    fn request(&self, line: &str) -> UserRequest {
        match self {
            Self::Editor { .. } => UserRequest::typed(line),
            Self::Plain(_) => UserRequest {
                text: String::new(),
                piped: Some(line.to_owned()),
            },
        }
    }

    fn open(setting: &CommandContext) -> Result<Self, CliError> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Plain(std::io::stdin().lines()));
        }
        let mut editor = DefaultEditor::new()
            .map_err(|error| CliError::usage(format!("no terminal: {error}")))?;
        let history = setting
            .environment
            .config_folder()
            .map(|folder| folder.join(HISTORY_FILE));
        if let Some(history) = &history {
            // There is none the first time.
            let _ = editor.load_history(history);
        }
        Ok(Self::Editor {
            editor: Box::new(editor),
            history,
        })
    }

    fn next(&mut self) -> Option<String> {
        match self {
            Self::Plain(lines) => loop {
                match lines.next()? {
                    Ok(line) => return Some(line),
                    Err(error) => print_notice(&format!("a line is left out: {error}")),
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
                            print_notice("once more, or /quit, leaves");
                        }
                        Err(_) => return None,
                    }
                }
            }
        }
    }
}

/// What the chat itself says; in a pipe stdout belongs to the answers.
fn print_notice(text: &str) {
    if std::io::stdout().is_terminal() {
        anstream::println!("{}", text.trim_end());
    } else {
        anstream::eprintln!("{}", text.trim_end());
    }
}
