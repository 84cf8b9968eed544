//! Tasks as turns of the team: the context is a session, the task is one turn of it, its answer is an artifact.

use std::collections::VecDeque;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use lango_domain::approval::ApprovalScope;
use lango_domain::event::{ApprovalState, CallId, Event, EventBody, TurnId, Update};
use lango_domain::failure::FailureFamily;
use lango_remote::a2a::{
    Artifact, ArtifactId, ErrorKind, Message, PartContent, ProtocolError, TaskState,
};

use super::stored_task::from_api_error;
use super::worker::{AnswerRight, TaskAssignment, TaskRecovery, TaskStep, TaskSteps, Worker};
use crate::approvals::{ClientBridge, decision};
use crate::gateway::Gateway;
use crate::turns::{OnDisconnect, TurnHandle, TurnInput, TurnSpec, TurnTarget};

const ANSWER_ARTIFACT: &str = "answer";
/// So many kept events are read at once.
const PAGE_SIZE: usize = 256;

/// Has the team work on tasks.
pub struct TeamWorker;

impl Worker for TeamWorker {
    fn input_modes(&self) -> Vec<String> {
        vec!["text/plain".to_owned(), "application/json".to_owned()]
    }

    fn output_modes(&self) -> Vec<String> {
        vec!["text/plain".to_owned()]
    }

    fn work(
        &self,
        gateway: &Gateway,
        assignment: TaskAssignment,
    ) -> Result<TaskSteps, ProtocolError> {
        let wish = TurnSpec {
            principal: assignment.principal.clone(),
            session: assignment.session.clone(),
            target: TurnTarget::Team,
            input: TurnInput::Request(request_text(&assignment.message)?),
            on_disconnect: OnDisconnect::Continue,
        };
        let turn = gateway.start_turn(wish).map_err(from_api_error)?;
        let turning = TurnTaskSteps {
            turn,
            client_bridge: gateway.client_bridge().clone(),
            assignment,
            own_turn: None,
            answer: AnswerBuffer::default(),
            questions: VecDeque::new(),
            pending_call: None,
            is_cancelled: false,
            is_finished: false,
            steps: VecDeque::new(),
        };
        Ok(stream::unfold(turning, TurnTaskSteps::next).boxed())
    }

    /// A message to a turn that asks for permission is an answer to what its task asked, and to nothing else.
    fn on_message(
        &self,
        gateway: &Gateway,
        assignment: &TaskAssignment,
    ) -> Result<TaskStep, ProtocolError> {
        let TaskAssignment {
            principal,
            session,
            pending_call: asked,
            ..
        } = assignment;
        let Some(call) = asked else {
            let message = "the task is being worked on; wait until it is done, or cancel it";
            return Err(ProtocolError::new(ErrorKind::UnsupportedOperation, message));
        };
        let mut waiting = gateway
            .client_bridge()
            .pending(principal)
            .into_iter()
            .map(|waiting| waiting.question);
        let question =
            waiting.find(|question| question.session == *session && question.call == *call);
        // Answered meanwhile: the work goes on, and what it asks next is told.
        let Some(question) = question else {
            return Ok(TaskStep::from_state(TaskState::Working));
        };
        let asks_again = |how| {
            Ok(TaskStep::Question {
                call: call.clone(),
                text: format_question(&question.intent.shows, how),
            })
        };
        if assignment.answer_right == AnswerRight::NotAllowed {
            return asks_again(MISSING_SCOPE_INSTRUCTIONS);
        }
        let Some(is_approved) = parse_answer(&assignment.message) else {
            return asks_again(YES_OR_NO_INSTRUCTIONS);
        };
        // Where the answer came too late, the work goes on as well.
        let _ = gateway.client_bridge().answer(
            principal,
            session,
            call,
            decision(is_approved, ApprovalScope::Once),
        );
        Ok(TaskStep::from_state(TaskState::Working))
    }

    /// The log of the session knows how the turn ended, if it did.
    fn recover<'a>(
        &'a self,
        gateway: &'a Gateway,
        assignment: &'a TaskAssignment,
    ) -> BoxFuture<'a, TaskRecovery> {
        async move {
            let TaskAssignment {
                principal,
                session,
                turn,
                ..
            } = assignment;
            if gateway.store().is_turn_running(principal, session).await {
                return TaskRecovery::OtherProcess;
            }
            let mut log = LoggedTurn::default();
            let mut last = 0;
            while let Some(turn) = turn {
                let read = gateway
                    .store()
                    .events_after(principal, session, last, PAGE_SIZE)
                    .await;
                let Ok(events) = read else {
                    return TaskRecovery::OtherProcess;
                };
                events
                    .iter()
                    .filter(|event| event.turn == *turn)
                    .for_each(|event| log.push(event));
                match events.last() {
                    Some(event) => last = event.seq,
                    None => break,
                }
            }
            TaskRecovery::Ended(log.into_steps())
        }
        .boxed()
    }
}

/// What is asked: every text, and data as it is written.
fn request_text(message: &Message) -> Result<String, ProtocolError> {
    let mut texts = Vec::new();
    for part in &message.parts {
        match &part.content {
            PartContent::Text(text) => texts.push(text.trim().to_owned()),
            PartContent::Data(data) => texts.push(format!("```json\n{data:#}\n```")),
            PartContent::Raw(_) | PartContent::Url(_) => {
                let message = "files are not read here; send their text";
                return Err(ProtocolError::new(
                    ErrorKind::ContentTypeNotSupported,
                    message,
                ));
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() {
        let error = ProtocolError::new(ErrorKind::InvalidParams, "the message says nothing");
        return Err(error.with_metadata("field", "message.parts"));
    }
    Ok(texts.join("\n\n"))
}

/// For everybody who reads the task: whoever began it need not be the one who answers.
const APPROVAL_INSTRUCTIONS: &str =
    "Answer yes or no with a token that may approve, here or at /api/approvals.";
const YES_OR_NO_INSTRUCTIONS: &str = "Answer yes or no.";
const MISSING_SCOPE_INSTRUCTIONS: &str =
    "Whoever may give it can answer at /api/approvals; this token may not.";

fn format_question(shows: &str, how: &str) -> String {
    format!("Permission is needed for this: {shows}\n{how}")
}

fn parse_answer(message: &Message) -> Option<bool> {
    let text = message
        .texts()
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_lowercase();
    match text.trim_end_matches(['.', '!']) {
        "yes" | "y" | "approve" | "approved" | "allow" | "ok" => Some(true),
        "no" | "n" | "deny" | "denied" | "reject" => Some(false),
        _ => None,
    }
}

/// A turn as the steps of its task.
struct TurnTaskSteps {
    turn: TurnHandle,
    client_bridge: ClientBridge,
    assignment: TaskAssignment,
    /// Events of other turns may come first: a turn that was stopped before is closed then.
    own_turn: Option<TurnId>,
    answer: AnswerBuffer,
    /// Asked about, and not yet told: it is not known whether anybody can answer.
    questions: VecDeque<(CallId, String)>,
    /// What the task waits for. It asks one thing at a time.
    pending_call: Option<CallId>,
    is_cancelled: bool,
    is_finished: bool,
    steps: VecDeque<TaskStep>,
}

impl TurnTaskSteps {
    async fn next(mut self) -> Option<(TaskStep, Self)> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some((step, self));
            }
            if self.is_finished {
                return None;
            }
            let opened = async {
                match self
                    .questions
                    .front()
                    .filter(|_| self.pending_call.is_none())
                {
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
                () = opened => self.ask_next(),
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
                Some("What happened could not be kept.".to_owned()),
            ),
            Update::Event(event) => self.on_event(event),
        }
    }

    fn on_event(&mut self, event: &Event) {
        if let (None, EventBody::User { .. }) = (&self.own_turn, &event.body) {
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
                // A task that asks goes on asking.
                if self.pending_call.is_none() {
                    self.steps.push_back(TaskStep::with_message(
                        TaskState::Working,
                        format!("{to} is working on it."),
                    ));
                }
            }
            EventBody::Answer { text } => self.steps.extend(self.answer.finish(text)),
            body => {
                if let Some((state, words)) = task_end(body) {
                    self.finish(state, words);
                }
            }
        }
    }

    /// The turn has no end: it was cancelled before it began, or stopped with the server.
    fn on_stream_end(&mut self) {
        match self.is_cancelled {
            true => self.finish(TaskState::Canceled, None),
            false => self.finish(TaskState::Failed, Some(INTERRUPTED_MESSAGE.to_owned())),
        }
    }

    fn finish(&mut self, state: TaskState, words: Option<String>) {
        self.is_finished = true;
        self.steps
            .push_back(TaskStep::Status { state, text: words });
    }
}

const INTERRUPTED_MESSAGE: &str =
    "The server was stopped before this was done; send the request again.";

/// How a turn's last event ends its task.
fn task_end(body: &EventBody) -> Option<(TaskState, Option<String>)> {
    match body {
        EventBody::TurnDone => Some((TaskState::Completed, None)),
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

/// What a log tells about a turn afterwards.
#[derive(Default)]
struct LoggedTurn {
    answer: Option<String>,
    end: Option<(TaskState, Option<String>)>,
}

impl LoggedTurn {
    fn push(&mut self, event: &Event) {
        match &event.body {
            EventBody::Answer { text } => self.answer = Some(text.clone()),
            body => self.end = task_end(body).or_else(|| self.end.take()),
        }
    }

    fn into_steps(self) -> Vec<TaskStep> {
        let answer = self.answer.map(|text| answer_chunk(text, false, true));
        let (state, words) = self
            .end
            .unwrap_or((TaskState::Failed, Some(INTERRUPTED_MESSAGE.to_owned())));
        answer
            .into_iter()
            .chain([TaskStep::Status { state, text: words }])
            .collect()
    }
}

/// The answer as it comes. The newest piece is held back, so that the last one can be told as such.
#[derive(Default)]
struct AnswerBuffer {
    sent: String,
    held: String,
}

impl AnswerBuffer {
    fn push(&mut self, text: &str) -> Option<TaskStep> {
        let piece = std::mem::replace(&mut self.held, text.to_owned());
        (!piece.is_empty()).then(|| self.send(piece, false))
    }

    /// What was said was not the answer; the next piece takes its place.
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn finish(&mut self, answer: &str) -> Option<TaskStep> {
        let rest = answer
            .strip_prefix(self.sent.as_str())
            .filter(|rest| !rest.is_empty())
            .map(str::to_owned);
        self.held.clear();
        let step = match rest {
            Some(rest) => self.send(rest, true),
            None => answer_chunk(answer.to_owned(), false, true),
        };
        self.sent.clear();
        Some(step)
    }

    fn send(&mut self, piece: String, last: bool) -> TaskStep {
        let append = !self.sent.is_empty();
        self.sent.push_str(&piece);
        answer_chunk(piece, append, last)
    }
}

fn answer_chunk(text: String, append: bool, last: bool) -> TaskStep {
    let artifact = Artifact {
        name: Some(ANSWER_ARTIFACT.to_owned()),
        ..Artifact::text(ArtifactId::new(ANSWER_ARTIFACT), text)
    };
    TaskStep::Artifact {
        artifact,
        append,
        last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(steps: Vec<Option<TaskStep>>) -> Vec<(String, bool, bool)> {
        let chunk = |step| match step {
            TaskStep::Artifact {
                artifact,
                append,
                last,
            } => (
                artifact.parts[0].as_text().unwrap().to_owned(),
                append,
                last,
            ),
            other => panic!("{other:?}"),
        };
        steps.into_iter().flatten().map(chunk).collect()
    }

    #[test]
    fn pieces_together_are_the_answer_and_the_last_one_says_so() {
        let mut draft = AnswerBuffer::default();
        let steps = vec![
            draft.push("안녕"),
            draft.push(", "),
            draft.push("Welt"),
            draft.finish("안녕, Welt"),
        ];
        let expected = [
            ("안녕", false, false),
            (", ", true, false),
            ("Welt", true, true),
        ];
        assert_eq!(
            chunks(steps),
            expected.map(|(text, append, last)| (text.to_owned(), append, last))
        );
    }

    #[test]
    fn an_answer_that_is_not_what_was_streamed_takes_its_place() {
        for (pieces, answer) in [(vec!["a", "b"], "x"), (vec![], "x"), (vec!["x", ""], "x")] {
            let mut draft = AnswerBuffer::default();
            for piece in pieces {
                draft.push(piece);
            }
            assert_eq!(
                chunks(vec![draft.finish(answer)]),
                [(answer.to_owned(), false, true)]
            );
        }
        let mut draft = AnswerBuffer::default();
        draft.push("let me look");
        draft.push("…");
        draft.reset();
        draft.push("it");
        let steps = vec![draft.push("'s 4"), draft.finish("it's 4")];
        assert_eq!(
            chunks(steps),
            [
                ("it".to_owned(), false, false),
                ("'s 4".to_owned(), true, true)
            ]
        );
    }

    #[test]
    fn only_a_clear_answer_is_an_answer() {
        let said = |text: &str| {
            parse_answer(&Message::text(
                lango_remote::a2a::MessageId::new("m"),
                lango_remote::a2a::Role::User,
                text,
            ))
        };
        assert_eq!(
            (said(" Yes. "), said("NO"), said("approve")),
            (Some(true), Some(false), Some(true))
        );
        for unclear in ["", "yes, but only the first", "no problem", "네"] {
            assert_eq!(said(unclear), None, "{unclear}");
        }
    }
}
