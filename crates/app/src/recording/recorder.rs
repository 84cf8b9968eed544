//! Records the inputs of a turn.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use lango_domain::ReadableKinds;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::event::SessionId;
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::redaction::Redact;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{Tool, ToolError};
use lango_engine::{ClockAndIds, Models};
use lango_models::Secret;
use serde_json::Value;

use super::{RecordedAttachment, RecordedRequest, RecordingError, RecordingLine, VERSION};
use crate::request::UserRequest;

/// Writes the lines of a recording. A write error is reported at the end and does not stop the
/// turn.
pub struct Recorder {
    path: PathBuf,
    /// Open once the turn has started.
    file: Mutex<Option<File>>,
    secrets: Vec<Secret>,
    /// The secrets of the vault.
    redactor: RwLock<SecretRedactor>,
    problems: Mutex<Vec<String>>,
}

impl Recorder {
    /// Creates a recorder for a file that must not exist yet.
    pub fn create(path: &Path, secrets: Vec<Secret>) -> Result<Arc<Self>, RecordingError> {
        let recorder = Self {
            path: path.to_owned(),
            file: Mutex::default(),
            secrets,
            redactor: RwLock::default(),
            problems: Mutex::default(),
        };
        match path.symlink_metadata() {
            Ok(_) => Err(recorder.unusable_error(
                "the file already exists, and recordings are never overwritten".to_owned(),
            )),
            Err(_) => Ok(Arc::new(recorder)),
        }
    }

    /// Redacts these values from now on, and in the lines that are written already.
    pub(super) fn learn(&self, redactor: SecretRedactor) {
        let has_new_value = {
            let mut known = self
                .redactor
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let has_new_value = !known.knows_all_of(&redactor);
            *known = redactor;
            has_new_value
        };
        if has_new_value && let Err(error) = self.rewrite() {
            self.add_problem(format!("the recording may contain a secret: {error}"));
        }
    }

    /// Writes all lines again, without the values that are known now. The file is overwritten in place,
    /// so that no other file keeps them.
    fn rewrite(&self) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else {
            return Ok(());
        };
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        let mut redacted = String::with_capacity(text.len());
        for line in text.lines() {
            match serde_json::from_str::<RecordingLine>(line) {
                Ok(line) => redacted.push_str(&self.redacted_json(line)),
                Err(_) => redacted.push_str(line),
            }
            redacted.push('\n');
        }
        if redacted != text {
            file.rewind()?;
            file.write_all(redacted.as_bytes())?;
            file.set_len(redacted.len() as u64)?;
            file.sync_data()?;
        }
        file.seek(SeekFrom::End(0)).map(|_| ())
    }

    fn add_problem(&self, problem: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        problems.push(problem);
    }

    pub(super) fn redactor(&self) -> SecretRedactor {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        redactor.clone()
    }

    /// Creates the file and starts recording the turn.
    pub fn start(&self, session: &SessionId, request: &UserRequest) -> Result<(), RecordingError> {
        let file = create_private_file(&self.path)
            .map_err(|error| self.unusable_error(error.to_string()))?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.write(RecordingLine::Recording { v: VERSION });
        self.write(RecordingLine::Request {
            session: session.clone(),
            request: request.clone(),
        });
        Ok(())
    }

    fn unusable_error(&self, reason: String) -> RecordingError {
        RecordingError::Unusable {
            file: self.path.clone(),
            reason,
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Wraps the models so that their exchanges are recorded.
    pub fn wrap_models(self: &Arc<Self>, models: Models) -> Models {
        let wrap = |model| {
            Arc::new(RecordingModel {
                model,
                recorder: Arc::clone(self),
            }) as Arc<dyn Model>
        };
        let per_agent: BTreeMap<_, _> = models
            .per_agent
            .into_iter()
            .map(|(agent, model)| (agent, wrap(model)))
            .collect();
        Models {
            default: wrap(models.default),
            per_agent,
        }
    }

    pub(super) fn wrap_tool(self: &Arc<Self>, tool: Tool) -> Tool {
        let (recorder, intent_recorder) = (Arc::clone(self), Arc::clone(self));
        let tool = tool.wrap_intent(move |name, intent_fn| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let (recorder, agent, tool) = (
                    Arc::clone(&intent_recorder),
                    context.agent.clone(),
                    name.clone(),
                );
                let future = intent_fn(context, args.clone());
                Box::pin(async move {
                    let result = future.await;
                    let intent = result.clone().map_err(|ToolError(reason)| reason);
                    recorder.write(RecordingLine::Intent {
                        agent,
                        tool,
                        args,
                        intent,
                    });
                    result
                })
            })
        });
        tool.wrap_function(move |name, function| {
            let name = name.to_owned();
            Arc::new(move |context, args| {
                let (recorder, agent, tool) =
                    (Arc::clone(&recorder), context.agent.clone(), name.clone());
                let future = function(context, args.clone());
                Box::pin(async move {
                    let result = future.await;
                    let label = result.as_ref().ok().and_then(|output| output.label.clone());
                    let attachments = result
                        .as_ref()
                        .map_or(&[][..], |output| output.content.attachments.as_slice());
                    let attachments = attachments.iter().map(RecordedAttachment::from_attachment);
                    let attachments = attachments.collect();
                    let output = result
                        .as_ref()
                        .map(|output| output.content.text.clone())
                        .map_err(|ToolError(reason)| reason.clone());
                    recorder.write(RecordingLine::Tool {
                        agent,
                        tool,
                        args,
                        output,
                        attachments,
                        label,
                    });
                    result
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
                clock.write(RecordingLine::Clock { at });
                at
            }),
            new_turn_id: Arc::new(move || {
                let id = (real.new_turn_id)();
                ids.write(RecordingLine::Turn { id: id.clone() });
                id
            }),
        }
    }

    /// Writes a line.
    fn write(&self, line: RecordingLine) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return };
        // Redacted while the file is locked: a value that is learned meanwhile is not missed.
        let text = self.redacted_json(line);
        if let Err(error) = writeln!(file, "{text}").and_then(|()| file.flush()) {
            self.add_problem(format!("the recording is incomplete: {error}"));
        }
    }

    /// Returns a line as JSON. Known secrets are redacted in every text, also if it is split over
    /// fragments; keys of settings are not redacted in names and numbers.
    fn redacted_json(&self, mut line: RecordingLine) -> String {
        if let RecordingLine::Model { fragments, .. } = &mut line
            && self.is_split_secret(fragments)
        {
            let text: String = fragments.iter().filter_map(fragment_text).collect();
            fragments.retain(|fragment| fragment_text(fragment).is_none());
            fragments.insert(0, Fragment::Text(text));
        }
        let mut value = serde_json::to_value(line).unwrap_or_default();
        self.redact(&mut value);
        value.redact(&self.redactor());
        value.to_string()
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

    /// Returns true if the joined text contains a secret, which may be split over several
    /// fragments.
    fn is_split_secret(&self, fragments: &[Fragment]) -> bool {
        let text: String = fragments.iter().filter_map(fragment_text).collect();
        let is_in = |secret: &Secret| secret.is_redactable() && secret.redact(&text) != text;
        self.secrets.iter().any(is_in) || self.redactor().finds_in(&text)
    }
}

fn fragment_text(fragment: &Fragment) -> Option<&str> {
    match fragment {
        Fragment::Text(text) => Some(text),
        _ => None,
    }
}

/// Creates a file that only its owner can read, since a recording contains private text.
fn create_private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
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
            recorder.write(RecordingLine::Decision {
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
        let (agent, recorded_request) = (
            request.agent.clone(),
            RecordedRequest::from_request(&request),
        );
        let line = RecordingLine::Model {
            agent,
            request: recorded_request,
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

    fn readable_kinds(&self) -> ReadableKinds {
        self.model.readable_kinds()
    }
}

/// An exchange with a model, written when it is dropped.
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
                Err(model_error) => *error = Some(model_error.clone()),
            }
        }
    }
}

impl Drop for RecordedExchange {
    fn drop(&mut self) {
        self.recorder.write(self.line.clone());
    }
}
