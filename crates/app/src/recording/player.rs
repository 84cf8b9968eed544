//! The same turn again, from a recording.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::event::SessionId;
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::{AgentName, Intent, Tool, ToolError, ToolOutput};
use lango_engine::{ClockAndIds, Models};
use serde_json::Value;

use super::{RecordedRequest, RecordingError, RecordingLine, VERSION};
use crate::request::UserRequest;

/// What to do where a request differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    Strict,
    Loose,
}

pub struct Replayer {
    session: SessionId,
    request: UserRequest,
    strictness: Strictness,
    /// What is left to be played.
    lines: Mutex<VecDeque<RecordingLine>>,
    problems: Mutex<Vec<String>>,
}

impl Replayer {
    pub fn open(path: &Path, strictness: Strictness) -> Result<Arc<Self>, RecordingError> {
        let unusable = |why: String| RecordingError::Unusable {
            file: path.to_owned(),
            reason: why,
        };
        let file = std::fs::File::open(path).map_err(|error| unusable(error.to_string()))?;
        let mut lines = VecDeque::new();
        for (at, text) in BufReader::new(file).lines().enumerate() {
            let malformed = |why: String| RecordingError::Malformed {
                file: path.to_owned(),
                line: at + 1,
                reason: why,
            };
            let text = text.map_err(|error| malformed(error.to_string()))?;
            lines.push_back(
                serde_json::from_str::<RecordingLine>(&text)
                    .map_err(|error| malformed(error.to_string()))?,
            );
        }
        match lines.pop_front() {
            Some(RecordingLine::Recording { v: VERSION }) => {}
            Some(RecordingLine::Recording { v }) => {
                return Err(unusable(format!(
                    "it has version {v}; this Lango reads {VERSION}"
                )));
            }
            _ => return Err(unusable("it does not begin like a recording".to_owned())),
        }
        let begun = lines.iter().find_map(|line| match line {
            RecordingLine::Request { session, request } => Some((session.clone(), request.clone())),
            _ => None,
        });
        let (session, request) = begun.ok_or_else(|| unusable("it holds no request".to_owned()))?;
        Ok(Arc::new(Self {
            session,
            request,
            strictness,
            lines: Mutex::new(lines),
            problems: Mutex::default(),
        }))
    }

    pub fn session(&self) -> SessionId {
        self.session.clone()
    }

    /// What the user asked then.
    pub fn request(&self) -> UserRequest {
        self.request.clone()
    }

    /// A model for every agent.
    pub fn models(self: &Arc<Self>) -> Models {
        Models {
            default: Arc::new(ReplayModel(Arc::clone(self))),
            per_agent: BTreeMap::new(),
        }
    }

    pub(super) fn wrap_tool(self: &Arc<Self>, tool: Tool) -> Tool {
        let (player, telling) = (Arc::clone(self), Arc::clone(self));
        let tool = tool.wrap_intent(move |name, _| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let intent = telling.next_intent(&context.agent, &name, &args);
                futures::future::ready(intent.map_err(ToolError)).boxed()
            })
        });
        tool.wrap_function(move |name, _| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let output = player.next_tool_output(&context.agent, &name, &args);
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

    /// Where the turn went another way than the recorded one, what was left unplayed among it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut complaints = self
            .problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let left = lines
            .iter()
            .filter(|line| {
                matches!(
                    line,
                    RecordingLine::Model { .. } | RecordingLine::Tool { .. }
                )
            })
            .count();
        if left > 0 {
            complaints.push(format!("{left} recorded exchanges were not asked for"));
        }
        complaints
    }

    pub fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }

    fn next_intent(
        &self,
        caller: &AgentName,
        name: &str,
        wanted: &Value,
    ) -> Result<Intent, String> {
        let found = self.take_line(|line| match line {
            RecordingLine::Intent {
                agent,
                tool,
                args,
                intent,
            } if agent == caller && tool == name && args == wanted => Some(intent.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| {
            Err(self.add_problem(format!(
                "the recording has no such call of {name} by {caller}"
            )))
        })
    }

    fn next_tool_output(
        &self,
        caller: &AgentName,
        name: &str,
        wanted: &Value,
    ) -> Result<ToolOutput, String> {
        let found = self.take_line(|line| match line {
            RecordingLine::Tool {
                agent,
                tool,
                args,
                output,
                label,
            } if agent == caller && tool == name && args == wanted => {
                Some(output.clone().map(|text| ToolOutput {
                    text,
                    label: label.clone(),
                }))
            }
            _ => None,
        });
        found.unwrap_or_else(|| {
            Err(self.add_problem(format!(
                "the recording has no such call of {name} by {caller}"
            )))
        })
    }

    /// The next exchange of the agent; a request that differs is told.
    fn next_exchange(&self, request: &ModelRequest) -> Vec<Result<Fragment, ModelError>> {
        let asked = RecordedRequest::from_request(request);
        // What ran side by side was written down as it ended: the same question first, then the agent's next.
        let of_agent = |line: &RecordingLine, wanted: Option<&RecordedRequest>| match line {
            RecordingLine::Model {
                agent,
                request: recorded,
                fragments,
                error,
            } if *agent == request.agent && wanted.is_none_or(|wanted| wanted == recorded) => {
                Some((recorded.clone(), fragments.clone(), error.clone()))
            }
            _ => None,
        };
        let found = self
            .take_line(|line| of_agent(line, Some(&asked)))
            .or_else(|| self.take_line(|line| of_agent(line, None)));
        let Some((recorded, fragments, error)) = found else {
            let why = self.add_problem(format!(
                "the recording has nothing more for {}",
                request.agent
            ));
            return vec![Err(ModelError::NotRecorded(why))];
        };
        if recorded != asked {
            let why = self.add_problem(format!(
                "{} is asked otherwise than in the recording: {}",
                request.agent,
                first_difference(&recorded, &asked)
            ));
            if self.strictness == Strictness::Strict {
                return vec![Err(ModelError::NotRecorded(why))];
            }
        }
        fragments
            .into_iter()
            .map(Ok)
            .chain(error.map(Err))
            .collect()
    }

    fn add_problem(&self, what: String) -> String {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what.clone());
        what
    }

    /// Takes the first line that `find` wants.
    fn take_line<T>(&self, find: impl Fn(&RecordingLine) -> Option<T>) -> Option<T> {
        let mut lines: MutexGuard<'_, VecDeque<RecordingLine>> =
            self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, found) = lines
            .iter()
            .enumerate()
            .find_map(|(at, line)| Some((at, find(line)?)))?;
        lines.remove(at);
        Some(found)
    }
}

/// Where nobody answered then, nobody is there.
struct ReplayApprover(Arc<Replayer>);

impl Approver for ReplayApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let found = self.0.take_line(|line| match line {
            RecordingLine::Decision {
                tool,
                args,
                decision,
            } if *tool == question.tool && *args == question.args => Some(*decision),
            _ => None,
        });
        futures::future::ready(found.unwrap_or(ApprovalDecision::NobodyThere)).boxed()
    }
}

struct ReplayModel(Arc<Replayer>);

impl Model for ReplayModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        stream::iter(self.0.next_exchange(&request)).boxed()
    }

    /// What was asked then fitted then.
    fn window(&self) -> usize {
        usize::MAX / 8
    }
}

/// Where two requests begin to differ.
fn first_difference(recorded: &RecordedRequest, asked: &RecordedRequest) -> String {
    if recorded.system != asked.system {
        return "the system prompt".to_owned();
    }
    if recorded.tools != asked.tools {
        return "the tools".to_owned();
    }
    let same = recorded
        .messages
        .iter()
        .zip(&asked.messages)
        .take_while(|(a, b)| a == b)
        .count();
    format!(
        "message {} of {} (then there were {})",
        same + 1,
        asked.messages.len(),
        recorded.messages.len()
    )
}
