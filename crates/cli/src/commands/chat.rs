//! `lango chat`: a conversation at the terminal.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use lango_app::{Assistant, Toolset, AssistantOptions, Request, Recording, connect_remote_agents, refresh_in_background, new_session};
use lango_domain::usage::UsageReport;
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_remote::RemoteTeam;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::usage;
use super::{CommandContext, ask, chatting_runtime};
use crate::approver::approver;
use crate::args::Global;
use crate::output::{DIM, CliError, OutputFormat, NAME, styled};
use crate::turn_printer::TurnPrinter;

const HELP: &str =
    "/new  a new session    /sessions  those of this chat    /agents  the team    /usage  the bill    /quit";

/// The file that typed lines are kept in.
pub const HISTORY: &str = "history";

/// `resume` names the session to go on with; the last one when it is empty.
pub fn run(global: &Global, resume: Option<&str>, yes: bool) -> Result<ExitCode, CliError> {
    let setting = CommandContext::read(global)?;
    let hands = setting.hands()?;
    let colleagues = connect_remote_agents(&setting.loaded, &setting.environment)?;
    refresh_in_background(&colleagues);
    let generation = colleagues.generation();
    let conversation = conversation(&setting, &hands, yes, colleagues)?;
    let show = TurnPrinter::new(global.json, false);
    show.warnings(&conversation.warnings);
    show.warnings(&hands.warnings());
    print_notice(&format!(
        "{} asks {}. {}",
        styled(NAME, "Lango"),
        styled(NAME, &conversation.model_name),
        styled(DIM, HELP)
    ));
    let runtime = chatting_runtime()?;
    let session = match resume {
        Some(named) => runtime.block_on(find_session(&conversation, named))?,
        None => new_session(),
    };
    let mut chat = ChatLoop {
        sessions: vec![session],
        hands,
        generation,
        yes,
        setting: &setting,
        conversation,
        runtime,
        json: global.json,
        exit: 0,
    };
    if resume.is_some() {
        chat.pick_up();
    }
    let mut lines = Lines::open(&setting)?;
    while let Some(line) = lines.next() {
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            command if command.starts_with('/') => chat.command(command),
            request => chat.turn(lines.request(request)),
        }
    }
    chat.runtime.block_on(super::wait_for_hooks(&chat.conversation));
    chat.runtime.block_on(super::apply_retention(&setting, &chat.conversation));
    Ok(ExitCode::from(chat.exit))
}

struct ChatLoop<'a> {
    setting: &'a CommandContext,
    hands: Toolset,
    /// Of the colleagues elsewhere, when the conversation was opened.
    generation: u64,
    /// Whether nothing is asked about.
    yes: bool,
    conversation: Assistant,
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

    fn turn(&mut self, request: Request) {
        let mut show = TurnPrinter::new(self.json, false);
        self.take_up_changes(&show);
        self.runtime.block_on(ask::turn(&self.conversation, self.session(), request, &mut show));
        self.exit = show.exit_code();
    }

    /// A skill that was made or changed, and an agent elsewhere that can be reached now, are there from the next turn on;
    /// commands that were started run on.
    fn take_up_changes(&mut self, show: &TurnPrinter) {
        let colleagues = self.conversation.colleagues.clone();
        let generation = colleagues.generation();
        let has_new_skills = self.hands.reload_skills();
        if !has_new_skills && generation == self.generation {
            return;
        }
        self.generation = generation;
        match conversation(self.setting, &self.hands, self.yes, colleagues) {
            Ok(conversation) => self.conversation = conversation,
            Err(failure) => _ = failure.print(OutputFormat::Plain),
        }
        if has_new_skills {
            show.warnings(&self.hands.warnings());
        }
    }

    /// Goes on with a turn that was interrupted, if there is one.
    fn pick_up(&mut self) {
        let mut show = TurnPrinter::new(self.json, false);
        print_notice(&format!("Going on with {}.", self.session()));
        self.runtime.block_on(ask::resume_turn(&self.conversation, self.session(), &mut show));
        self.exit = show.exit_code();
    }

    fn command(&mut self, command: &str) {
        match command {
            "/new" => {
                self.sessions.push(new_session());
                print_notice("A new session begins.");
            }
            "/sessions" => {
                for (at, session) in self.sessions.iter().enumerate() {
                    let mark = if at + 1 == self.sessions.len() { "*" } else { " " };
                    print_notice(&format!("{mark} {session}"));
                }
            }
            "/agents" => print_notice(&self.conversation.agents.join(", ")),
            "/usage" => print_notice(&self.bill()),
            _ => print_notice(HELP),
        }
    }

    fn bill(&self) -> String {
        let mut bill = UsageReport::default();
        for session in &self.sessions {
            let key = SessionKeyRef { session, principal: &Principal::local() };
            let events = self.conversation.store.load(key, HistoryWindow::Everything);
            let events = self.runtime.block_on(events).unwrap_or_default();
            events.iter().for_each(|event| bill.add(event));
        }
        usage::plain(&bill)
    }
}

fn conversation(
    setting: &CommandContext,
    hands: &Toolset,
    yes: bool,
    colleagues: RemoteTeam,
) -> Result<Assistant, CliError> {
    let (tools, approver) = (setting.tools_of(hands)?, approver(yes));
    let (stores, colleagues) = (&setting.stores, Some(colleagues));
    let means = AssistantOptions { stores, tools, approver, tape: &Recording::Off, colleagues };
    Ok(Assistant::open(&setting.loaded, &setting.environment, means)?)
}

/// The session that is meant: the one of that id, or the one used last.
async fn find_session(conversation: &Assistant, named: &str) -> Result<SessionId, CliError> {
    let store = &conversation.store;
    if !named.is_empty() {
        return Ok(store.session(&Principal::local(), &SessionId::new(named)).await?.id);
    }
    let sessions = store.sessions(&Principal::local()).await?;
    let last = sessions.into_iter().next();
    last.map(|session| session.id).ok_or_else(|| CliError::usage("there is no session to go on with"))
}

/// Where requests come from: an editor on a terminal, plain lines elsewhere.
enum Lines {
    Editor { editor: Box<DefaultEditor>, history: Option<std::path::PathBuf> },
    Plain(std::io::Lines<std::io::StdinLock<'static>>),
}

impl Lines {
    /// What comes over a pipe is not in the user's own words.
    fn request(&self, line: &str) -> Request {
        match self {
            Self::Editor { .. } => Request::typed(line),
            Self::Plain(_) => Request { text: String::new(), piped: Some(line.to_owned()) },
        }
    }

    fn open(setting: &CommandContext) -> Result<Self, CliError> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Plain(std::io::stdin().lines()));
        }
        let mut editor =
            DefaultEditor::new().map_err(|error| CliError::usage(format!("no terminal: {error}")))?;
        let history = setting.environment.config_folder().map(|folder| folder.join(HISTORY));
        if let Some(history) = &history {
            // There is none the first time.
            let _ = editor.load_history(history);
        }
        Ok(Self::Editor { editor: Box::new(editor), history })
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
