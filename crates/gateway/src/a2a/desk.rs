//! What can be asked about tasks, carried out for one caller.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use lango_domain::event::SessionId;
use lango_remote::a2a::{
    Call, Content, ContextId, ErrorKind, ListTasks, Message, MessageId, Metadata, Part, ProtocolError, Reply,
    Request, Role, SendMessage, StreamEvent, Task, TaskId, TaskPage, TaskState, TaskStatus, Waiting, Wire,
};
use lango_store::{NewTask, TaskBegun, TaskQuery, TokenScope};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::board::{Live, Watch, apply};
use super::kept::{Kept, trouble};
use super::watching::{Until, done, watched};
use super::worker::{Answer, Assignment, Found, Heard, Step};
use crate::gate::Caller;
use crate::gateway::Gateway;
use crate::reading::session_named;

/// So many tasks are on a page unless fewer are asked for.
const PAGE: u32 = 50;
/// Work that is told to end has so long to do so.
const ENDING: Duration = Duration::from_secs(20);

pub(crate) type Events = BoxStream<'static, StreamEvent>;

/// What a request is answered with.
pub(crate) enum Answered {
    Value(Value),
    Stream(Events),
}

/// What became of a message.
enum Sent {
    Message(Message),
    Watch(Watch, Until),
    /// Sent before, and nothing follows.
    Task(Task),
}

/// A task that was looked up.
struct Looked {
    kept: Kept,
    standing: Standing,
}

enum Standing {
    Over,
    Live(Arc<Live>),
    Waits,
    Elsewhere,
}

pub(crate) struct Desk {
    pub gateway: Gateway,
    pub caller: Caller,
}

impl Desk {
    pub async fn carry_out(&self, call: Call, wire: Wire) -> Result<Answered, ProtocolError> {
        if call.tenant.is_some() {
            let message = "there are no tenants here; use the address of the card";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message).about("field", "tenant"));
        }
        let value = match call.request {
            Request::SendMessage(send) => self.send_and_wait(*send, wire).await?.write(wire),
            Request::StreamMessage(send) => {
                return self.send_and_watch(*send, wire).await.map(Answered::Stream);
            }
            Request::GetTask { task, history } => {
                shortened(self.look(&task).await?.kept.task, history).write(wire)
            }
            Request::ListTasks(list) => self.list(list).await?.write(wire),
            Request::CancelTask { task } => self.cancel(&task).await?.write(wire),
            Request::SubscribeToTask { task } => return self.subscribe(&task).await.map(Answered::Stream),
            Request::CreatePushConfig(config) => self.listen(config, wire).await?.write(wire),
            Request::GetPushConfig { task, config } => self.listener(&task, config).await?.write(wire),
            Request::ListPushConfigs { task } => self.listeners(&task, wire).await?,
            Request::DeletePushConfig { task, config } => {
                self.stop_listening(&task, &config).await?;
                if wire == Wire::V03Rpc { Value::Null } else { json!({}) }
            }
            // The card needs the address that was asked, and is answered before it comes here.
            Request::ExtendedCard => return Err(unsupported("the card is asked for at its own address")),
        };
        Ok(Answered::Value(value))
    }

    async fn send_and_wait(&self, send: SendMessage, wire: Wire) -> Result<Reply, ProtocolError> {
        let (waiting, history) = (send.waiting, send.history);
        let task = match self.send(send, wire).await? {
            Sent::Message(message) => return Ok(Reply::Message(message)),
            Sent::Task(task) => task,
            Sent::Watch(watch, _) if waiting == Waiting::NotAtAll => watch.task,
            Sent::Watch(watch, until) => done(watch, until).await,
        };
        Ok(Reply::Task(shortened(task, history)))
    }

    async fn send_and_watch(&self, send: SendMessage, wire: Wire) -> Result<Events, ProtocolError> {
        let place = self.stream_place()?;
        let (watch, until) = match self.send(send, wire).await? {
            Sent::Message(message) => return Ok(only(StreamEvent::Message(message))),
            Sent::Task(task) => return Ok(only(StreamEvent::Task(task))),
            Sent::Watch(watch, until) => (watch, until),
        };
        Ok(watched(&self.gateway, watch, until, place))
    }

    async fn send(&self, send: SendMessage, wire: Wire) -> Result<Sent, ProtocolError> {
        self.check_modes(&send)?;
        if let Some(config) = &send.push {
            self.check_listener(config)?;
        }
        match send.message.task.clone() {
            Some(task) => self.go_on(&task, send, wire).await,
            None => match self.gateway.a2a().worker.reply(&send.message) {
                Some(reply) => Ok(Sent::Message(reply)),
                None => self.begin(send, wire).await,
            },
        }
    }

    async fn begin(&self, send: SendMessage, wire: Wire) -> Result<Sent, ProtocolError> {
        let session = match &send.message.context {
            Some(context) => session_of(context)?,
            None => self.gateway.new_session(),
        };
        let live = self.gateway.a2a().board.open(self.new_task(session, send.message.clone()));
        let kept = live.kept();
        let now = self.gateway.now();
        let settings = &self.gateway.settings().a2a;
        let begun = self.gateway.store().begin_task(NewTask {
            row: kept.row(),
            message: send.message.id.to_string(),
            repeated_since: now.checked_sub(settings.repeat_time()).unwrap_or(jiff::Timestamp::MIN),
            most: settings.tasks.get(),
        });
        let refuse = |error| {
            self.gateway.a2a().board.remove(&live);
            Err(error)
        };
        match begun.await {
            Ok(TaskBegun::New) => {}
            Ok(TaskBegun::Repeated(row)) => {
                self.gateway.a2a().board.remove(&live);
                return self.again(&TaskId::new(row.id)).await;
            }
            Ok(TaskBegun::TooMany) => {
                let message = "too many of your tasks are open; wait for some to end, or cancel them";
                return refuse(ProtocolError::new(ErrorKind::Busy, message));
            }
            Err(error) => return refuse(trouble(error)),
        }
        if let Some(config) = send.push {
            self.keep_listener(&kept.task.id, config, wire).await?;
        }
        let watch = live.watch();
        let message = kept.task.history.last().cloned().unwrap_or(send.message);
        if let Err(error) = self.set_to_work(&live, message) {
            let id = kept.task.id.as_str();
            self.gateway.store().forget_task(self.caller.principal(), id).await.map_err(trouble)?;
            return refuse(error);
        }
        Ok(Sent::Watch(watch, Until::Rest))
    }

    fn new_task(&self, session: SessionId, message: Message) -> Kept {
        let now = self.gateway.now();
        let id = TaskId::new(format!("task-{}", self.gateway.new_session()));
        let context = ContextId::new(session.as_str());
        let message = Message { task: Some(id.clone()), context: Some(context.clone()), ..message };
        let task = Task {
            id,
            context: Some(context),
            status: TaskStatus { state: TaskState::Submitted, message: None, at: Some(now) },
            artifacts: Vec::new(),
            history: vec![message],
            metadata: Metadata::new(),
        };
        let principal = self.caller.principal().clone();
        Kept { task, principal, session, turn: None, created: now }
    }

    /// A message that came before: its task as it stands, followed from here.
    async fn again(&self, task: &TaskId) -> Result<Sent, ProtocolError> {
        let looked = self.look(task).await?;
        Ok(match looked.standing {
            Standing::Live(live) if !looked.kept.task.status.state.is_interrupted() => {
                Sent::Watch(live.watch(), Until::Rest)
            }
            _ => Sent::Task(looked.kept.task),
        })
    }

    /// A message for a task that is there already.
    async fn go_on(&self, id: &TaskId, send: SendMessage, wire: Wire) -> Result<Sent, ProtocolError> {
        let Looked { kept, standing } = self.look(id).await?;
        if send.message.context.as_ref().is_some_and(|context| Some(context) != kept.task.context.as_ref()) {
            let message = "this task belongs to another context";
            return Err(
                ProtocolError::new(ErrorKind::InvalidParams, message).about("field", "message.contextId")
            );
        }
        let live = match standing {
            Standing::Over => {
                let message = "the task is over; send the message without a task to go on in its context";
                return Err(unsupported(message).about("taskId", id.as_str()));
            }
            Standing::Elsewhere => return Err(unsupported("another process works on this task")),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept.clone()),
        };
        let watch = live.watch();
        if let Some(config) = send.push {
            self.keep_listener(id, config, wire).await?;
        }
        let message = Message { task: Some(id.clone()), context: kept.task.context.clone(), ..send.message };
        if !live.is_worked_on() {
            live.hear(message.clone());
            self.set_to_work(&live, message)?;
            return Ok(Sent::Watch(watch, Until::RestAgain));
        }
        let assignment = self.assignment(live.kept(), message.clone(), CancellationToken::new());
        match self.gateway.a2a().worker.hear(&self.gateway, &assignment)? {
            Heard::Taken => live.hear(message),
            Heard::StillWaits(words) => {
                live.hear(message);
                live.step(&self.gateway, Step::saying(TaskState::InputRequired, words)).await;
            }
        }
        Ok(Sent::Watch(watch, Until::RestAgain))
    }

    fn set_to_work(&self, live: &Arc<Live>, message: Message) -> Result<(), ProtocolError> {
        let Some(cancel) = live.take_up() else { return Err(unsupported("the task is being worked on")) };
        let assignment = self.assignment(live.kept(), message, cancel);
        match self.gateway.a2a().worker.work(&self.gateway, assignment) {
            Ok(steps) => {
                let live = Arc::clone(live);
                self.gateway.pumps().spawn(live.carry(self.gateway.clone(), steps));
                Ok(())
            }
            Err(error) => {
                live.lay_down();
                Err(error)
            }
        }
    }

    fn assignment(&self, kept: Kept, message: Message, cancel: CancellationToken) -> Assignment {
        let answer = match self.caller.needs(&[TokenScope::Approve]) {
            Ok(()) => Answer::MayAnswer,
            Err(_) => Answer::MayNot,
        };
        let Kept { task, principal, session, turn, .. } = kept;
        Assignment { principal, session, turn, answer, task, message, cancel }
    }

    /// A task of the caller's. One that nobody works on though it should be is found out about.
    async fn look(&self, id: &TaskId) -> Result<Looked, ProtocolError> {
        let board = &self.gateway.a2a().board;
        let live = |live: Arc<Live>| Looked { kept: live.kept(), standing: Standing::Live(live) };
        if let Some(found) = board.get(self.caller.principal(), id.as_str()) {
            return Ok(live(found));
        }
        let row = self.gateway.store().task(self.caller.principal(), id.as_str()).await.map_err(trouble)?;
        let kept = Kept::read(row.ok_or_else(|| not_found(id))?)?;
        // It may have become live while the store was read.
        match board.get(self.caller.principal(), id.as_str()) {
            Some(found) => Ok(live(found)),
            None => self.find(kept).await,
        }
    }

    async fn find(&self, mut kept: Kept) -> Result<Looked, ProtocolError> {
        if kept.is_over() {
            return Ok(Looked { kept, standing: Standing::Over });
        }
        let message = kept.task.history.last().cloned();
        let message = message.unwrap_or_else(|| Message::text(MessageId::new("none"), Role::User, ""));
        let assignment = self.assignment(kept.clone(), message, CancellationToken::new());
        let standing = match self.gateway.a2a().worker.find(&self.gateway, &assignment).await {
            Found::Waits => Standing::Waits,
            Found::Elsewhere => Standing::Elsewhere,
            Found::Ended(steps) => {
                for step in steps {
                    apply(&mut kept, step, self.gateway.now());
                }
                self.gateway.store().keep_task(kept.row()).await.map_err(trouble)?;
                Standing::Over
            }
        };
        Ok(Looked { kept, standing })
    }

    async fn list(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        let most = list.page_size.unwrap_or(PAGE);
        let behind = list.page_token.as_deref().map(place_in_list).transpose()?;
        let query = TaskQuery {
            principal: self.caller.principal().clone(),
            session: list.context.as_ref().map(|context| SessionId::new(context.as_str())),
            state: list.state.map(|state| state.as_str(Wire::V1).to_owned()),
            changed_after: list.changed_after,
            behind,
            most: most as usize + 1,
        };
        let (mut rows, total) = self.gateway.store().tasks(query).await.map_err(trouble)?;
        let has_more = rows.len() > most as usize;
        rows.truncate(most as usize);
        let last = rows.last().filter(|_| has_more);
        let next_page_token = last.map(|row| format!("{}~{}", row.updated, row.id)).unwrap_or_default();
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            let live = self.gateway.a2a().board.get(self.caller.principal(), &row.id);
            let kept = match live {
                Some(live) => live.kept(),
                None => self.find(Kept::read(row)?).await?.kept,
            };
            let mut task = shortened(kept.task, Some(list.history.unwrap_or(0)));
            if !list.with_artifacts {
                task.artifacts.clear();
            }
            tasks.push(task);
        }
        let total_size = u32::try_from(total).unwrap_or(u32::MAX);
        let page_size = u32::try_from(tasks.len()).unwrap_or(most);
        Ok(TaskPage { tasks, next_page_token, page_size, total_size })
    }

    async fn cancel(&self, id: &TaskId) -> Result<Task, ProtocolError> {
        let Looked { kept, standing } = self.look(id).await?;
        let refuse =
            |why: &str| ProtocolError::new(ErrorKind::TaskNotCancelable, why).about("taskId", id.as_str());
        let live = match standing {
            Standing::Over => return Err(refuse("the task is over")),
            Standing::Elsewhere => return Err(refuse("another process works on this task")),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept),
        };
        let watch = live.watch();
        if live.stop() {
            let _ = tokio::time::timeout(ENDING, done(watch, Until::End)).await;
        } else {
            live.step(&self.gateway, Step::state(TaskState::Canceled)).await;
        }
        self.gateway.a2a().board.tidy(&live);
        let task = live.kept().task;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => Err(refuse("the task ended before it could be canceled")),
            _ => Ok(task),
        }
    }

    async fn subscribe(&self, id: &TaskId) -> Result<Events, ProtocolError> {
        let place = self.stream_place()?;
        let Looked { kept, standing } = self.look(id).await?;
        let live = match standing {
            Standing::Over => {
                return Err(unsupported("the task is over; get it instead").about("taskId", id.as_str()));
            }
            Standing::Elsewhere => return Ok(only(StreamEvent::Task(kept.task))),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept),
        };
        Ok(watched(&self.gateway, live.watch(), Until::RestAgain, place))
    }

    fn stream_place(&self) -> Result<super::streams::Opened, ProtocolError> {
        let most = self.gateway.settings().a2a.streams.get();
        self.gateway.a2a().streams.open(self.caller.principal(), most)
    }

    /// What cannot be read, and answers that could not be, are refused before anything begins.
    fn check_modes(&self, send: &SendMessage) -> Result<(), ProtocolError> {
        let worker = &self.gateway.a2a().worker;
        let (reads, writes) = (worker.input_modes(), worker.output_modes());
        for part in &send.message.parts {
            let media_type = media_type(part);
            if !reads.iter().any(|mode| fits(mode, media_type)) {
                let media_type = lango_net::words::one_line(media_type, 60);
                let message = format!("a part is {media_type}; only {} can be read", reads.join(", "));
                return Err(ProtocolError::new(ErrorKind::ContentTypeNotSupported, message));
            }
        }
        let wanted = &send.accepted_output_modes;
        if !wanted.is_empty() && !wanted.iter().any(|wanted| writes.iter().any(|mode| fits(wanted, mode))) {
            let message = format!("answers are {}, and none of these is accepted", writes.join(", "));
            return Err(ProtocolError::new(ErrorKind::ContentTypeNotSupported, message));
        }
        Ok(())
    }
}

fn media_type(part: &Part) -> &str {
    let plain = match &part.content {
        Content::Text(_) => "text/plain",
        Content::Data(_) => "application/json",
        Content::Raw(_) | Content::Url(_) => "application/octet-stream",
    };
    part.media_type
        .as_deref()
        .map_or(plain, |media_type| media_type.split(';').next().unwrap_or(plain).trim())
}

/// Whether a media type is one that a pattern such as `text/*` or `text` means.
fn fits(pattern: &str, media_type: &str) -> bool {
    let pattern = pattern.split(';').next().unwrap_or(pattern).trim();
    let (kind, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    pattern == "*/*"
        || pattern.eq_ignore_ascii_case(media_type)
        || pattern.strip_suffix("/*").unwrap_or(pattern).eq_ignore_ascii_case(kind)
}

fn session_of(context: &ContextId) -> Result<SessionId, ProtocolError> {
    session_named(context.as_str()).map_err(|refusal| {
        ProtocolError::new(ErrorKind::InvalidParams, refusal.message).about("field", "message.contextId")
    })
}

/// A place in a list, as `nextPageToken` told it.
fn place_in_list(token: &str) -> Result<(jiff::Timestamp, String), ProtocolError> {
    let read = token.split_once('~').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    read.ok_or_else(|| {
        ProtocolError::new(ErrorKind::InvalidParams, "this page token is not one that was given here")
            .about("field", "pageToken")
    })
}

/// With the last messages only.
fn shortened(mut task: Task, history: Option<u32>) -> Task {
    if let Some(most) = history {
        let surplus = task.history.len().saturating_sub(most as usize);
        task.history.drain(..surplus);
    }
    task
}

fn only(event: StreamEvent) -> Events {
    Box::pin(futures::stream::once(std::future::ready(event)))
}

/// What is not there and what is somebody else's look the same (B74).
pub(crate) fn not_found(id: &TaskId) -> ProtocolError {
    let message = "there is no such task";
    ProtocolError::new(ErrorKind::TaskNotFound, message).about("taskId", id.as_str())
}

pub(crate) fn unsupported(message: &str) -> ProtocolError {
    ProtocolError::new(ErrorKind::UnsupportedOperation, message)
}

impl Desk {
    /// Whether the task is the caller's.
    pub async fn owns(&self, id: &TaskId) -> Result<(), ProtocolError> {
        self.look(id).await.map(drop)
    }
}
