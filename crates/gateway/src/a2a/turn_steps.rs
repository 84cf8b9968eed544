//! Converts a turn to the steps of its task, while it runs or from its log.

use std::collections::VecDeque;

use futures::stream::{self, StreamExt};
use lango_domain::event::{ApprovalState, CallId, Event, EventBody, TurnId, Update};
use lango_domain::failure::FailureFamily;
use lango_remote::a2a::TaskState;

use super::answer_buffer::{AnswerBuffer, answer_chunk};
use super::approval_text::{APPROVAL_INSTRUCTIONS, format_question};
use super::worker::{TaskAssignment, TaskStep, TaskSteps};
use lango_runtime::{ClientBridge, TurnHandle};

const INTERRUPTED_MESSAGE: &str =
    "The server was stopped before the task was done; send the request again.";

/// The steps of a running turn.
pub(super) struct TurnTaskSteps {
    turn: TurnHandle,
    client_bridge: ClientBridge,
    assignment: TaskAssignment,
    /// The turn of the task. The stream may start with events of an earlier turn that is closed
    /// first.
    own_turn: Option<TurnId>,
    answer: AnswerBuffer,
    /// Questions of the turn that are not part of the task yet: they are added only once they are
    /// pending, because there may be no token that can answer them.
    questions: VecDeque<(CallId, String)>,
    /// The call that the task asks about. A task asks one question at a time.
    pending_call: Option<CallId>,
    is_cancelled: bool,
    is_finished: bool,
    steps: VecDeque<TaskStep>,
}

impl TurnTaskSteps {
    pub fn new(turn: TurnHandle, client_bridge: ClientBridge, assignment: TaskAssignment) -> Self {
        Self {
            turn,
            client_bridge,
            assignment,
            own_turn: None,
            answer: AnswerBuffer::default(),
            questions: VecDeque::new(),
            pending_call: None,
            is_cancelled: false,
            is_finished: false,
            steps: VecDeque::new(),
        }
    }

    pub fn into_stream(self) -> TaskSteps {
        stream::unfold(self, Self::next).boxed()
    }

    async fn next(mut self) -> Option<(TaskStep, Self)> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some((step, self));
            }
            if self.is_finished {
                return None;
            }
            let question_opened = async {
                let next = self.questions.front();
                match next.filter(|_| self.pending_call.is_none()) {
                    Some((call, _)) => {
                        let TaskAssignment {
                            principal, session, ..
                        } = &self.assignment;
                        self.client_bridge
                            .wait_until_open(principal, session, call)
                            .await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                update = self.turn.next() => match update {
                    Some(update) => self.on_update(&update),
                    None => self.on_stream_end(),
                },
                () = self.assignment.cancel.cancelled(), if !self.is_cancelled => {
                    self.is_cancelled = true;
                    self.turn.cancel();
                }
                () = question_opened => self.ask_next(),
            }
        }
    }

    fn ask_next(&mut self) {
        if let Some((call, shows)) = self.questions.pop_front() {
            self.pending_call = Some(call.clone());
            self.steps.push_back(TaskStep::Question {
                call,
                text: format_question(&shows, APPROVAL_INSTRUCTIONS),
            });
        }
    }

    fn on_update(&mut self, update: &Update) {
        match update {
            Update::Delta { text, .. } => self.steps.extend(self.answer.push(text)),
            Update::ToolOutputDelta { .. } => {}
            Update::StoreFailed(_) => self.finish(
                TaskState::Failed,
                Some("The events of the task could not be stored.".to_owned()),
            ),
            Update::Event(event) => self.on_event(event),
        }
    }

    fn on_event(&mut self, event: &Event) {
        if let (None, EventBody::User(_)) = (&self.own_turn, &event.body) {
            self.own_turn = Some(event.turn.clone());
            self.steps.extend([
                TaskStep::Turn(event.turn.clone()),
                TaskStep::from_state(TaskState::Working),
            ]);
        }
        if self.own_turn.as_ref() != Some(&event.turn) {
            return;
        }
        match &event.body {
            EventBody::Approval {
                id,
                state: ApprovalState::Asked,
                shows,
                ..
            } => {
                self.questions.push_back((id.clone(), shows.clone()));
            }
            EventBody::Approval { id, .. } => {
                self.questions.retain(|(call, _)| call != id);
                if self.pending_call.take_if(|call| call == id).is_some() {
                    self.steps
                        .push_back(TaskStep::from_state(TaskState::Working));
                }
            }
            EventBody::Note { .. } | EventBody::Rejected { .. } => self.answer.reset(),
            EventBody::Transfer { to, .. } => {
                self.answer.reset();
                // A pending question stays in the status of the task.
                if self.pending_call.is_none() {
                    self.steps.push_back(TaskStep::with_message(
                        TaskState::Working,
                        format!("{to} is working on it."),
                    ));
                }
            }
            EventBody::Answer(content) => {
                let text = content.to_plain_text();
                self.steps.extend(self.answer.finish(&text));
            }
            body => {
                if let Some((state, text)) = task_end(body) {
                    self.finish(state, text);
                }
            }
        }
    }

    /// Finishes the task of a turn without a final event: it was cancelled before it started, or
    /// suspended with the server.
    fn on_stream_end(&mut self) {
        match self.is_cancelled {
            true => self.finish(TaskState::Canceled, None),
            false => self.finish(TaskState::Failed, Some(INTERRUPTED_MESSAGE.to_owned())),
        }
    }

    fn finish(&mut self, state: TaskState, text: Option<String>) {
        self.is_finished = true;
        self.steps.push_back(TaskStep::Status { state, text });
    }
}

/// Returns the final status of a task for the last event of its turn.
fn task_end(body: &EventBody) -> Option<(TaskState, Option<String>)> {
    match body {
        EventBody::TurnDone { .. } => Some((TaskState::Completed, None)),
        EventBody::TurnFailed { code, .. } if code.family() == FailureFamily::Cancelled => {
            Some((TaskState::Canceled, None))
        }
        EventBody::TurnFailed { message, hint, .. } if hint.is_empty() => {
            Some((TaskState::Failed, Some(message.clone())))
        }
        EventBody::TurnFailed { message, hint, .. } => {
            Some((TaskState::Failed, Some(format!("{message} ({hint})"))))
        }
        _ => None,
    }
}

/// The answer and the end of a turn, read from the log.
#[derive(Default)]
pub(super) struct TaskTurnLog {
    answer: Option<String>,
    end: Option<(TaskState, Option<String>)>,
}

impl TaskTurnLog {
    pub fn push(&mut self, event: &Event) {
        match &event.body {
            EventBody::Answer(content) => self.answer = Some(content.to_plain_text()),
            body => self.end = task_end(body).or_else(|| self.end.take()),
        }
    }

    pub fn into_steps(self) -> Vec<TaskStep> {
        let answer = self.answer.map(|text| answer_chunk(text, false, true));
        let (state, text) = self
            .end
            .unwrap_or((TaskState::Failed, Some(INTERRUPTED_MESSAGE.to_owned())));
        answer
            .into_iter()
            .chain([TaskStep::Status { state, text }])
            .collect()
    }
}
