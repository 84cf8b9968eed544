//! Keeping what a turn takes from outside.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::event::SessionId;
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::{Tool, ToolError};
use lango_engine::{ClockAndIds, Models};
use lango_models::Secret;
use serde_json::Value;

use super::{RecordedRequest, RecordingError, RecordingLine, VERSION};
use crate::request::UserRequest;

/// Writes one line after the other; a line that cannot be written is told at the end, and the turn goes on.
pub struct Recorder {
    path: PathBuf,
    /// There from the beginning of the turn on.
    file: Mutex<Option<File>>,
    secrets: Vec<Secret>,
    problems: Mutex<Vec<String>>,
}

impl Recorder {
    /// For a file that is not there yet; one that is, is left alone.
    pub fn create(path: &Path, secrets: Vec<Secret>) -> Result<Arc<Self>, RecordingError> {
        let recorder = Self {
            path: path.to_owned(),
            file: Mutex::default(),
            secrets,
            problems: Mutex::default(),
        };
        match path.symlink_metadata() {
            Ok(_) => Err(recorder.unusable_error(
                "it is there already, and a recording is never overwritten".to_owned(),
            )),
            Err(_) => Ok(Arc::new(recorder)),
        }
    }

    /// The turn begins: from here on everything is written down.
    pub fn start(&self, session: &SessionId, request: &UserRequest) -> Result<(), RecordingError> {
        let file = create_private_file(&self.path)
            .map_err(|error| self.unusable_error(error.to_string()))?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.write(&RecordingLine::Recording { v: VERSION });
        self.write(&RecordingLine::Request {
            session: session.clone(),
            request: request.clone(),
        });
        Ok(())
    }

    fn unusable_error(&self, why: String) -> RecordingError {
        RecordingError::Unusable {
            file: self.path.clone(),
            reason: why,
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The same models, overheard.
    pub fn wrap_models(self: &Arc<Self>, models: Models) -> Models {
        let overhear = |model| {
            Arc::new(RecordingModel {
                model,
                recorder: Arc::clone(self),
            }) as Arc<dyn Model>
        };
        let per_agent: BTreeMap<_, _> = models
            .per_agent
            .into_iter()
            .map(|(agent, model)| (agent, overhear(model)))
            .collect();
        Models {
            default: overhear(models.default),
            per_agent,
        }
    }

    pub(super) fn wrap_tool(self: &Arc<Self>, tool: Tool) -> Tool {
        let (recorder, telling) = (Arc::clone(self), Arc::clone(self));
        let tool = tool.wrap_intent(move |name, tell| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let (recorder, agent, tool) =
                    (Arc::clone(&telling), context.agent.clone(), name.clone());
                let told = tell(context, args.clone());
                Box::pin(async move {
                    let told = told.await;
                    let intent = told.clone().map_err(|ToolError(why)| why);
                    recorder.write(&RecordingLine::Intent {
                        agent,
                        tool,
                        args,
                        intent,
                    });
                    told
                })
            })
        });
        tool.wrap_function(move |name, function| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let (recorder, agent, tool) =
                    (Arc::clone(&recorder), context.agent.clone(), name.clone());
                let running = function(context, args.clone());
                Box::pin(async move {
                    let done = running.await;
                    let label = done.as_ref().ok().and_then(|output| output.label.clone());
                    let output = done
                        .as_ref()
                        .map(|output| output.text.clone())
                        .map_err(|ToolError(why)| why.clone());
                    recorder.write(&RecordingLine::Tool {
                        agent,
                        tool,
                        args,
                        output,
                        label,
                    });
                    done
                })
            })
        })
    }

    pub(super) fn wrap_approver(self: &Arc<Self>, real: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(RecordingApprover {
            real,
            recorder: Arc::clone(self),
        })
    }

    pub(super) fn wrap_clock_and_ids(self: &Arc<Self>, real: ClockAndIds) -> ClockAndIds {
        let (clock, ids) = (Arc::clone(self), Arc::clone(self));
        ClockAndIds {
            now: Arc::new(move || {
                let at = (real.now)();
                clock.write(&RecordingLine::Clock { at });
                at
            }),
            new_turn_id: Arc::new(move || {
                let id = (real.new_turn_id)();
                ids.write(&RecordingLine::Turn { id: id.clone() });
                id
            }),
        }
    }

    /// Known secrets are taken out of every text, whatever brought them there; never out of names and numbers.
    fn write(&self, line: &RecordingLine) {
        let mut value = serde_json::to_value(line).unwrap_or_default();
        self.redact(&mut value);
        let text = value.to_string();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return };
        if let Err(error) = writeln!(file, "{text}").and_then(|()| file.flush()) {
            self.problems
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("the recording is not whole: {error}"));
        }
    }
}

impl Recorder {
    fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for secret in &self.secrets {
                    if secret.is_redactable() {
                        *text = secret.redact(text);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.redact(item)),
            _ => {}
        }
    }

    /// A secret that came in pieces is only seen in the whole.
    fn is_split_secret(&self, fragments: &[Fragment]) -> bool {
        let text: String = fragments.iter().filter_map(fragment_text).collect();
        let is_in = |secret: &Secret| secret.is_redactable() && secret.redact(&text) != text;
        self.secrets.iter().any(is_in)
    }
}

fn fragment_text(fragment: &Fragment) -> Option<&str> {
    match fragment {
        Fragment::Text(text) => Some(text),
        _ => None,
    }
}

/// For its owner only: what was said in a turn is nobody else's business.
fn create_private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

struct RecordingApprover {
    real: Arc<dyn Approver>,
    recorder: Arc<Recorder>,
}

impl Approver for RecordingApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let (tool, args) = (question.tool.clone(), question.args.clone());
        let (answer, recorder) = (self.real.ask(question), Arc::clone(&self.recorder));
        Box::pin(async move {
            let decision = answer.await;
            recorder.write(&RecordingLine::Decision {
                tool,
                args,
                decision,
            });
            decision
        })
    }
}

struct RecordingModel {
    model: Arc<dyn Model>,
    recorder: Arc<Recorder>,
}

impl Model for RecordingModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let (agent, asked) = (
            request.agent.clone(),
            RecordedRequest::from_request(&request),
        );
        let line = RecordingLine::Model {
            agent,
            request: asked,
            fragments: Vec::new(),
            error: None,
        };
        let exchange = RecordedExchange {
            line,
            recorder: Arc::clone(&self.recorder),
        };
        stream::unfold(
            (self.model.stream(request), exchange),
            |(mut fragments, mut exchange)| async move {
                let next = fragments.next().await?;
                exchange.record(&next);
                Some((next, (fragments, exchange)))
            },
        )
        .boxed()
    }

    fn window(&self) -> usize {
        self.model.window()
    }
}

/// Written down when it ends, however it ends.
struct RecordedExchange {
    line: RecordingLine,
    recorder: Arc<Recorder>,
}

impl RecordedExchange {
    fn record(&mut self, next: &Result<Fragment, ModelError>) {
        if let RecordingLine::Model {
            fragments, error, ..
        } = &mut self.line
        {
            match next {
                Ok(fragment) => fragments.push(fragment.clone()),
                Err(failed) => *error = Some(failed.clone()),
            }
        }
    }
}

impl Drop for RecordedExchange {
    fn drop(&mut self) {
        if let RecordingLine::Model { fragments, .. } = &mut self.line
            && self.recorder.is_split_secret(fragments)
        {
            let text: String = fragments.iter().filter_map(fragment_text).collect();
            fragments.retain(|fragment| fragment_text(fragment).is_none());
            fragments.insert(0, Fragment::Text(text));
        }
        self.recorder.write(&self.line);
    }
}
