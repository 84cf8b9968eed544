//! Runs tasks as turns of the team: a context is a session, a task is one turn of it, and the answer
//! is an artifact.

use futures::future::{BoxFuture, FutureExt};
use lango_domain::Content;
use lango_domain::approval::{ApprovalQuestion, ApprovalScope};
use lango_domain::content::{Attachment, AttachmentError};
use lango_domain::event::CallId;
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::session::SessionKeyRef;
use lango_engine::TurnRequest;
use lango_remote::a2a::{ErrorKind, Message, PartContent, ProtocolError, TaskState};

use super::approval_text::{
    MISSING_SCOPE_INSTRUCTIONS, YES_OR_NO_INSTRUCTIONS, format_question, parse_answer,
};
use super::modes::ANY_FILE;
use super::stored_task::from_api_error;
use super::turn_steps::{TaskTurnLog, TurnTaskSteps};
use super::worker::{
    AnswerRight, TASK_RUNNING_MESSAGE, TaskAssignment, TaskRecovery, TaskStep, TaskSteps, Worker,
};
use crate::gateway::Gateway;
use lango_runtime::approvals::decision;
use lango_runtime::{OnDisconnect, TurnSpec};

/// Number of stored events read per query.
const PAGE_SIZE: usize = 256;

/// The media types of messages. `application/octet-stream` means any file.
const INPUT_MODES: [&str; 8] = [
    "text/plain",
    "application/json",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    ANY_FILE,
];

/// The worker that runs tasks as turns of the team.
pub struct TeamWorker;

impl Worker for TeamWorker {
    fn input_modes(&self) -> Vec<String> {
        INPUT_MODES.map(str::to_owned).to_vec()
    }

    fn output_modes(&self) -> Vec<String> {
        vec!["text/plain".to_owned()]
    }

    fn work(
        &self,
        gateway: &Gateway,
        assignment: TaskAssignment,
    ) -> Result<TaskSteps, ProtocolError> {
        let (session, principal) = (assignment.session.clone(), assignment.principal.clone());
        let content = request_content(&assignment.message)?;
        let spec = TurnSpec {
            on_disconnect: OnDisconnect::Continue,
            ..TurnSpec::request(TurnRequest::from_user(session, principal, content))
        };
        let turn = gateway.start_turn(spec).map_err(from_api_error)?;
        let client_bridge = gateway.client_bridge().clone();
        Ok(TurnTaskSteps::new(turn, client_bridge, assignment).into_stream())
    }

    /// Takes the message as an answer to the approval question in the task's status, and to no
    /// other question.
    fn on_message(
        &self,
        gateway: &Gateway,
        assignment: &TaskAssignment,
    ) -> Result<TaskStep, ProtocolError> {
        let Some(call) = &assignment.pending_call else {
            let error = ProtocolError::new(ErrorKind::UnsupportedOperation, TASK_RUNNING_MESSAGE);
            return Err(error);
        };
        // If the question was answered in the meantime, the turn continues and asks what it needs
        // next.
        let Some(question) = pending_question(gateway, assignment, call) else {
            return Ok(TaskStep::from_state(TaskState::Working));
        };
        let ask_again = |instructions| {
            Ok(TaskStep::Question {
                call: call.clone(),
                text: format_question(&question.intent.shows, instructions),
            })
        };
        if assignment.answer_right == AnswerRight::NotAllowed {
            return ask_again(MISSING_SCOPE_INSTRUCTIONS);
        }
        let Some(is_approved) = parse_answer(&assignment.message) else {
            return ask_again(YES_OR_NO_INSTRUCTIONS);
        };
        // An answer that comes too late has no effect, and the turn continues as well.
        let _ = gateway.client_bridge().answer(
            &assignment.principal,
            &assignment.session,
            call,
            decision(is_approved, ApprovalScope::Once),
        );
        Ok(TaskStep::from_state(TaskState::Working))
    }

    /// Reads the end of the turn from the log of its session.
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
            if gateway
                .stores()
                .catalog
                .is_turn_running(SessionKeyRef { session, principal })
                .await
            {
                return TaskRecovery::OtherProcess;
            }
            let mut log = TaskTurnLog::default();
            let mut last = 0;
            while let Some(turn) = turn {
                let result = gateway
                    .stores()
                    .catalog
                    .events_after(principal, session, last, PAGE_SIZE)
                    .await;
                let Ok(events) = result else {
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

/// Returns the pending question about a call of the task's session.
fn pending_question(
    gateway: &Gateway,
    assignment: &TaskAssignment,
    call: &CallId,
) -> Option<ApprovalQuestion> {
    gateway
        .client_bridge()
        .pending(&assignment.principal)
        .into_iter()
        .map(|pending| pending.question)
        .find(|question| question.session == assignment.session && question.call == *call)
}

/// Returns the request in a message: its texts, its data as JSON, and its files.
fn request_content(message: &Message) -> Result<Content, ProtocolError> {
    let mut content = Content::default();
    for part in &message.parts {
        match &part.content {
            PartContent::Text(text) if text.trim().is_empty() => {}
            PartContent::Text(text) => content.push_paragraph(text.trim()),
            PartContent::Data(data) => content.push_paragraph(&format!("```json\n{data:#}\n```")),
            PartContent::Raw(bytes) => {
                let name = part.filename.as_deref().unwrap_or("file");
                let file = Attachment::from_base64(bytes, name, part.media_type.as_deref());
                content.attach(file.map_err(invalid_file)?);
            }
            PartContent::Url(_) => {
                return Err(ProtocolError::new(
                    ErrorKind::ContentTypeNotSupported,
                    "files are not fetched from other addresses; send their bytes",
                ));
            }
        }
    }
    Attachment::check_all(&content.attachments).map_err(invalid_file)?;
    if content.is_empty() {
        return Err(invalid_parts("the message is empty"));
    }
    if content.text.is_empty() {
        content.push_paragraph(ATTACHMENTS_ONLY_REQUEST);
    }
    Ok(content)
}

fn invalid_file(error: AttachmentError) -> ProtocolError {
    let reason = error.to_string();
    match error {
        AttachmentError::MediaType(_) | AttachmentError::WrongContent { .. } => {
            ProtocolError::new(ErrorKind::ContentTypeNotSupported, reason)
        }
        AttachmentError::Empty(_)
        | AttachmentError::TooLarge { .. }
        | AttachmentError::TooMany(_)
        | AttachmentError::TooLargeTogether(_)
        | AttachmentError::Base64(_) => invalid_parts(&reason),
    }
}

fn invalid_parts(reason: &str) -> ProtocolError {
    let error = ProtocolError::new(ErrorKind::InvalidParams, reason);
    error.with_metadata("field", "message.parts")
}
