//! Replays a turn from a recording.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::content::AttachmentKind;
use lango_domain::event::SessionId;
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_domain::{
    AgentName, Attachment, Content, Intent, ReadableKinds, Tool, ToolError, ToolOutput,
};
use lango_engine::{ClockAndIds, Models};
use serde_json::Value;

use super::{RecordedAttachment, RecordedRequest, RecordingError, RecordingLine, VERSION};
use crate::request::UserRequest;

/// The treatment of requests that differ from the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    Strict,
    Loose,
}

pub struct Replayer {
    session: SessionId,
    request: UserRequest,
    /// The kinds of attachments in the recorded requests to models.
    readable: ReadableKinds,
    strictness: Strictness,
    /// The lines that are not replayed yet.
    lines: Mutex<VecDeque<RecordingLine>>,
    problems: Mutex<Vec<String>>,
}

impl Replayer {
    pub fn open(path: &Path, strictness: Strictness) -> Result<Arc<Self>, RecordingError> {
        let unusable = |reason: String| RecordingError::Unusable {
            file: path.to_owned(),
            reason,
        };
        let file = std::fs::File::open(path).map_err(|error| unusable(error.to_string()))?;
        let mut lines = VecDeque::new();
        for (at, text) in BufReader::new(file).lines().enumerate() {
            let malformed = |reason: String| RecordingError::Malformed {
                file: path.to_owned(),
                line: at + 1,
                reason,
            };
            let text = text.map_err(|error| malformed(error.to_string()))?;
            match serde_json::from_str::<RecordingLine>(&text) {
                Ok(line) => lines.push_back(line),
                // Without a first line, the file is not a recording at all.
                Err(_) if lines.is_empty() => break,
                Err(error) => return Err(malformed(error.to_string())),
            }
        }
        match lines.pop_front() {
            Some(RecordingLine::Recording { v: VERSION }) => {}
            Some(RecordingLine::Recording { v }) => {
                return Err(unusable(format!(
                    "its version is {v}, but only version {VERSION} is supported"
                )));
            }
            _ => return Err(unusable("the file is not a recording".to_owned())),
        }
        let start = lines.iter().find_map(|line| match line {
            RecordingLine::Request { session, request } => Some((session.clone(), request.clone())),
            _ => None,
        });
        let (session, request) =
            start.ok_or_else(|| unusable("it contains no request".to_owned()))?;
        Ok(Arc::new(Self {
            session,
            request,
            readable: readable_kinds(&lines),
            strictness,
            lines: Mutex::new(lines),
            problems: Mutex::default(),
        }))
    }

    pub fn session(&self) -> SessionId {
        self.session.clone()
    }

    /// Returns the recorded request of the user.
    pub fn request(&self) -> UserRequest {
        self.request.clone()
    }

    /// Returns a model that replays the exchanges of every agent.
    pub fn models(self: &Arc<Self>) -> Models {
        Models {
            default: Arc::new(ReplayModel(Arc::clone(self))),
            per_agent: BTreeMap::new(),
        }
    }

    pub(super) fn wrap_tool(self: &Arc<Self>, tool: Tool) -> Tool {
        let (replayer, intent_replayer) = (Arc::clone(self), Arc::clone(self));
        let tool = tool.without_release().wrap_intent(move |name, _| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let intent = intent_replayer.next_intent(&context.agent, &name, &args);
                futures::future::ready(intent.map_err(ToolError)).boxed()
            })
        });
        tool.wrap_function(move |name, _| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let output = replayer.next_tool_output(&context.agent, &name, &args);
                futures::future::ready(output.map_err(ToolError)).boxed()
            })
        })
    }

    pub(super) fn approver(self: &Arc<Self>) -> Arc<dyn Approver> {
        Arc::new(ReplayApprover(Arc::clone(self)))
    }

    pub(super) fn wrap_clock_and_ids(self: &Arc<Self>, real: ClockAndIds) -> ClockAndIds {
        let (clock, ids) = (Arc::clone(self), Arc::clone(self));
        let (now, new_turn) = (real.now, real.new_turn_id);
        ClockAndIds {
            now: Arc::new(move || {
                clock
                    .take_line(|line| {
                        if let RecordingLine::Clock { at } = line {
                            Some(*at)
                        } else {
                            None
                        }
                    })
                    .unwrap_or_else(|| now())
            }),
            new_turn_id: Arc::new(move || {
                ids.take_line(|line| {
                    if let RecordingLine::Turn { id } = line {
                        Some(id.clone())
                    } else {
                        None
                    }
                })
                .unwrap_or_else(|| new_turn())
            }),
        }
    }

    /// Returns differences between the turn and the recording, including unused exchanges.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = self
            .problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = lines
            .iter()
            .filter(|line| {
                matches!(
                    line,
                    RecordingLine::Model { .. } | RecordingLine::Tool { .. }
                )
            })
            .count();
        if unused > 0 {
            problems.push(format!("{unused} recorded exchanges were not used"));
        }
        problems
    }

    pub fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }

    fn next_intent(
        &self,
        caller: &AgentName,
        name: &str,
        expected_args: &Value,
    ) -> Result<Intent, String> {
        let intent = self.take_line(|line| match line {
            RecordingLine::Intent {
                agent,
                tool,
                args,
                intent,
            } if agent == caller && tool == name && args == expected_args => Some(intent.clone()),
            _ => None,
        });
        intent.unwrap_or_else(|| {
            Err(self.add_problem(format!(
                "the recording has no such call of {name} by {caller}"
            )))
        })
    }

    fn next_tool_output(
        &self,
        caller: &AgentName,
        name: &str,
        expected_args: &Value,
    ) -> Result<ToolOutput, String> {
        let output = self.take_line(|line| match line {
            RecordingLine::Tool {
                agent,
                tool,
                args,
                output,
                attachments,
                label,
            } if agent == caller && tool == name && args == expected_args => {
                let attachments = attachments
                    .iter()
                    .filter_map(RecordedAttachment::to_attachment);
                Some(output.clone().map(|text| ToolOutput {
                    content: Content {
                        text,
                        attachments: attachments.collect(),
                    },
                    label: label.clone(),
                }))
            }
            _ => None,
        });
        output.unwrap_or_else(|| {
            Err(self.add_problem(format!(
                "the recording has no such call of {name} by {caller}"
            )))
        })
    }

    /// Returns the next exchange of the agent. Reports a request that differs from the recorded
    /// one.
    fn next_exchange(&self, request: &ModelRequest) -> Vec<Result<Fragment, ModelError>> {
        let actual = RecordedRequest::from_request(request);
        // Concurrent exchanges were recorded in the order in which they ended, so look for the same
        // request first, then for the agent's next one.
        let agent_exchange = |line: &RecordingLine, expected: Option<&RecordedRequest>| match line {
            RecordingLine::Model {
                agent,
                request: recorded,
                fragments,
                error,
            } if *agent == request.agent
                && expected.is_none_or(|expected| expected == recorded) =>
            {
                Some((recorded.clone(), fragments.clone(), error.clone()))
            }
            _ => None,
        };
        let exchange = self
            .take_line(|line| agent_exchange(line, Some(&actual)))
            .or_else(|| self.take_line(|line| agent_exchange(line, None)));
        let Some((recorded, fragments, error)) = exchange else {
            let reason = self.add_problem(format!(
                "the recording has no more exchanges for {}",
                request.agent
            ));
            return vec![Err(ModelError::NotRecorded(reason))];
        };
        if recorded != actual {
            let reason = self.add_problem(format!(
                "the request to {} differs from the recording: {}",
                request.agent,
                first_difference(&recorded, &actual)
            ));
            if self.strictness == Strictness::Strict {
                return vec![Err(ModelError::NotRecorded(reason))];
            }
        }
        fragments
            .into_iter()
            .map(Ok)
            .chain(error.map(Err))
            .collect()
    }

    fn add_problem(&self, problem: String) -> String {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem.clone());
        problem
    }

    /// Removes the first line for which `find` returns a value.
    fn take_line<T>(&self, find: impl Fn(&RecordingLine) -> Option<T>) -> Option<T> {
        let mut lines: MutexGuard<'_, VecDeque<RecordingLine>> =
            self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, value) = lines
            .iter()
            .enumerate()
            .find_map(|(at, line)| Some((at, find(line)?)))?;
        lines.remove(at);
        Some(value)
    }
}

/// Replays decisions. Without a recorded one, the call counts as having no approver.
struct ReplayApprover(Arc<Replayer>);

impl Approver for ReplayApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let decision = self.0.take_line(|line| match line {
            RecordingLine::Decision {
                tool,
                args,
                decision,
            } if *tool == question.tool && *args == question.args => Some(*decision),
            _ => None,
        });
        futures::future::ready(decision.unwrap_or(ApprovalDecision::NobodyThere)).boxed()
    }
}

struct ReplayModel(Arc<Replayer>);

impl Model for ReplayModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        stream::iter(self.0.next_exchange(&request)).boxed()
    }

    /// Unlimited, since the recorded requests fitted into their window.
    fn window(&self) -> usize {
        usize::MAX / 8
    }

    /// The kinds in the recorded requests, so that the same requests are built.
    fn readable_kinds(&self) -> ReadableKinds {
        self.0.readable
    }
}

/// Returns the kinds of attachments in the requests to models.
fn readable_kinds(lines: &VecDeque<RecordingLine>) -> ReadableKinds {
    let requests = lines.iter().filter_map(|line| match line {
        RecordingLine::Model { request, .. } => Some(request),
        _ => None,
    });
    let messages = requests.flat_map(|request| &request.messages);
    let kinds: Vec<AttachmentKind> = messages
        .flat_map(Message::attachments)
        .map(Attachment::kind)
        .collect();
    ReadableKinds {
        images: kinds.contains(&AttachmentKind::Image),
        pdfs: kinds.contains(&AttachmentKind::Pdf),
    }
}

/// Describes the first difference between two requests.
fn first_difference(recorded: &RecordedRequest, actual: &RecordedRequest) -> String {
    if recorded.system != actual.system {
        return "the system prompt".to_owned();
    }
    if recorded.tools != actual.tools {
        return "the tools".to_owned();
    }
    let same = recorded
        .messages
        .iter()
        .zip(&actual.messages)
        .take_while(|(a, b)| a == b)
        .count();
    format!(
        "message {} of {} (the recording has {})",
        same + 1,
        actual.messages.len(),
        recorded.messages.len()
    )
}
