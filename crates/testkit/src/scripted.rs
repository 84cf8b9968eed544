//! Parts of a turn that follow a script.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt, iter, pending};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::{CallId, Decider, Usage};
use lango_domain::hooks::{
    Advisor, ContextError, ContextRequest, ContextSource, Digest, DigestSource, FailedCall,
};
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest, Thought, ToolCall};
use lango_domain::remote_agent::{RemoteAgent, RemoteError, RemotePiece, RemoteTask};
use lango_domain::reply_limits::Excess;
use lango_domain::session::SessionKey;
use lango_domain::{
    Destination, Intent, Label, LabeledText, OutgoingData, Safety, Tool, ToolError,
};
use serde_json::{Value, json};

use crate::script::{RemoteBehavior, ScriptedPart, ScriptedReply, ToolBehavior};

/// Says what the script has for each agent, in order, and remembers what it was asked.
pub struct ScriptedModel {
    replies: Mutex<HashMap<String, Vec<ScriptedReply>>>,
    requests: Mutex<Vec<ModelRequest>>,
    window: usize,
}

impl ScriptedModel {
    pub fn new(replies: HashMap<String, Vec<ScriptedReply>>, window: usize) -> Self {
        Self {
            replies: Mutex::new(replies),
            requests: Mutex::default(),
            window,
        }
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What the script had to say and was never asked for.
    pub fn unused_replies(&self) -> Vec<String> {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let left = replies
            .iter()
            .filter(|(_, queue)| queue.iter().any(|reply| !reply.always));
        left.map(|(agent, queue)| format!("{agent} had {} more replies", queue.len()))
            .collect()
    }

    fn next(&self, agent: &str) -> Vec<ScriptedPart> {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let alias = if agent.starts_with("lango-") {
            "root"
        } else {
            agent
        };
        match replies.get_mut(alias) {
            Some(queue) if queue.first().is_some_and(|reply| reply.always) => {
                queue[0].parts.clone()
            }
            Some(queue) if !queue.is_empty() => queue.remove(0).parts,
            _ => vec![ScriptedPart::Error(format!(
                "malformed the script has nothing more for {agent}"
            ))],
        }
    }
}

#[expect(
    clippy::panic,
    reason = "a model that panics is what some stories are about"
)]
impl Model for ScriptedModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let parts = self.next(request.agent.as_str());
        let number = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request);
            requests.len()
        };
        if parts.contains(&ScriptedPart::Panics) {
            panic!("as the story says");
        }
        let hangs = parts.contains(&ScriptedPart::Hangs);
        let whole = !parts.contains(&ScriptedPart::BreaksOff);
        let said = parts
            .into_iter()
            .enumerate()
            .flat_map(move |(at, part)| fragments(part, &format!("c{number}.{at}")));
        let end = whole.then_some(Ok(Fragment::Done));
        if hangs {
            iter(said).chain(pending()).boxed()
        } else {
            iter(said.chain(end)).boxed()
        }
    }

    fn window(&self) -> usize {
        self.window
    }
}

fn fragments(part: ScriptedPart, id: &str) -> Vec<Result<Fragment, ModelError>> {
    match part {
        ScriptedPart::Text(pieces) => pieces
            .into_iter()
            .map(|piece| Ok(Fragment::Text(piece)))
            .collect(),
        ScriptedPart::Call {
            id: given,
            name,
            arguments,
        } => {
            let id = CallId::new(given.unwrap_or_else(|| id.to_owned()));
            vec![Ok(Fragment::Call(ToolCall {
                id,
                name,
                arguments,
            }))]
        }
        ScriptedPart::Usage(tokens) => {
            let usage = Usage {
                model: "scripted".to_owned(),
                input: tokens,
                ..Usage::default()
            };
            vec![Ok(Fragment::Usage(usage))]
        }
        ScriptedPart::Thought(text) => {
            let seal = Some(json!({ "signature": text.len() }));
            vec![Ok(Fragment::Thought(Thought {
                provider: "scripted".to_owned(),
                text,
                seal,
                call: None,
            }))]
        }
        ScriptedPart::Error(kind) => vec![Err(model_error(&kind))],
        ScriptedPart::BreaksOff | ScriptedPart::Hangs | ScriptedPart::Panics => Vec::new(),
    }
}

fn model_error(kind: &str) -> ModelError {
    match kind {
        "auth" => ModelError::Auth,
        "quota" => ModelError::Quota,
        "busy" => ModelError::Busy { retry_after: None },
        "too_long" => ModelError::TooLong,
        "too_large" => ModelError::TooLarge(Excess::Text),
        "refused" => ModelError::Refused("it is against the rules".to_owned()),
        "connection" => ModelError::Connection("refused".to_owned()),
        other => ModelError::Malformed(other.trim_start_matches("malformed ").to_owned()),
    }
}

/// A tool that behaves as told; harmless and saying "ok" when told nothing.
#[expect(
    clippy::panic,
    reason = "a tool that panics is what some stories are about"
)]
pub fn scripted_tool(name: &str, behaviours: &[ToolBehavior]) -> Tool {
    let told = behaviours.to_vec();
    let safety = match () {
        () if told.contains(&ToolBehavior::Dangerous) => Safety::Dangerous,
        () if told.contains(&ToolBehavior::Moderate) => Safety::Moderate,
        () => Safety::Safe,
    };
    let mut tool = Tool::new(name, format!("Does {name}."), safety, move |_, _: Value| {
        let told = told.clone();
        async move {
            let mut output = Ok("ok".to_owned());
            for behaviour in told {
                match behaviour {
                    ToolBehavior::Returns(text) => output = Ok(text),
                    ToolBehavior::Fails(why) => output = Err(ToolError(why)),
                    ToolBehavior::Panics => panic!("as the story says"),
                    ToolBehavior::Hangs => futures::future::pending().await,
                    ToolBehavior::Takes(time) => tokio::time::sleep(time).await,
                    ToolBehavior::Wants(_)
                    | ToolBehavior::Moderate
                    | ToolBehavior::Dangerous
                    | ToolBehavior::Untrusted
                    | ToolBehavior::Private
                    | ToolBehavior::Sends(_) => {}
                }
            }
            output
        }
    });
    tool.parameters = parameters(behaviours);
    if behaviours.contains(&ToolBehavior::Untrusted) {
        tool = tool.with_untrusted_output();
    }
    if behaviours.contains(&ToolBehavior::Private) {
        tool = tool.with_private_output();
    }
    if let Some(to) = behaviours.iter().find_map(ToolBehavior::sends_to) {
        tool = tool.with_outgoing(move |args: Value| {
            let first = args
                .as_object()
                .and_then(|map| map.values().next())
                .and_then(Value::as_str);
            let to = Destination::Configured(vec![to.clone()]);
            OutgoingData {
                to,
                data: first.unwrap_or_default().to_owned(),
            }
        });
    }
    // A call is about its first argument, and of one kind with those that begin with the same word.
    tool.with_intent(move |_, args: Value| async move {
        let first = args
            .as_object()
            .and_then(|map| map.values().next())
            .and_then(Value::as_str);
        let subject = first.unwrap_or_default().to_owned();
        let pattern = subject.split(' ').next().map(|word| format!("{word} *"));
        Ok(Intent {
            level: safety,
            shows: format!("would do {subject}"),
            subject,
            pattern,
        })
    })
}

fn parameters(behaviours: &[ToolBehavior]) -> Value {
    let wanted = behaviours.iter().find_map(|behaviour| match behaviour {
        ToolBehavior::Wants(list) => Some(list),
        _ => None,
    });
    let Some(wanted) = wanted else {
        return json!({ "type": "object" });
    };
    let properties: serde_json::Map<String, Value> = wanted
        .iter()
        .map(|(name, kind)| (name.clone(), json!({ "type": kind })))
        .collect();
    let required: Vec<&String> = wanted.iter().map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Answers questions in order; afterwards nobody is there.
pub struct ScriptedApprover(Mutex<Vec<String>>);

impl ScriptedApprover {
    pub fn new(answers: &[String]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(answers.to_vec())))
    }
}

impl Approver for ScriptedApprover {
    fn ask(&self, _question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = if answers.is_empty() {
            String::new()
        } else {
            answers.remove(0)
        };
        if answer == "hangs" {
            return futures::future::pending().boxed();
        }
        let decision = match answer.as_str() {
            "yes" => ApprovalDecision::Approved {
                scope: ApprovalScope::Once,
                by: Decider::User,
            },
            "same" => ApprovalDecision::Approved {
                scope: ApprovalScope::SameCall,
                by: Decider::User,
            },
            "pattern" => ApprovalDecision::Approved {
                scope: ApprovalScope::Pattern,
                by: Decider::User,
            },
            "no" => ApprovalDecision::Denied,
            "late" => ApprovalDecision::TimedOut,
            _ => ApprovalDecision::NobodyThere,
        };
        futures::future::ready(decision).boxed()
    }
}

/// Always has the same to say.
pub struct ScriptedSource {
    pub name: String,
    pub text: String,
}

#[expect(
    clippy::panic,
    reason = "a source that panics is what some stories are about"
)]
impl ContextSource for ScriptedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_tokens(&self) -> usize {
        200
    }

    fn gather(
        &self,
        _request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        let (name, text) = (self.name.clone(), self.text.clone());
        async move {
            match text.as_str() {
                "fails" => Err(ContextError("as the story says".to_owned())),
                "hangs" => futures::future::pending().await,
                "panics" => panic!("as the story says"),
                _ => Ok(Some(LabeledText {
                    label: Label::private(&name),
                    text,
                })),
            }
        }
        .boxed()
    }
}

/// A colleague elsewhere.
pub struct ScriptedRemote(pub RemoteBehavior);

#[expect(
    clippy::panic,
    reason = "a remote that panics is what some stories are about"
)]
impl RemoteAgent for ScriptedRemote {
    fn stream(&self, _task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>> {
        match &self.0 {
            RemoteBehavior::Says(text) => iter([Ok(RemotePiece::Text(text.clone()))]).boxed(),
            RemoteBehavior::Fails(why) => iter([Err(RemoteError(why.clone()))]).boxed(),
            RemoteBehavior::Hangs => pending().boxed(),
            RemoteBehavior::Panics => panic!("as the story says"),
        }
    }
}

/// Stands for the earlier part of every session.
pub struct ScriptedDigest(pub Digest);

impl DigestSource for ScriptedDigest {
    fn digest(&self, _of: SessionKey) -> BoxFuture<'static, Result<Option<Digest>, ContextError>> {
        let digest = self.0.clone();
        async move { Ok(Some(digest)) }.boxed()
    }
}

/// Says the same about every failure.
pub struct ScriptedAdvisor(pub String);

impl Advisor for ScriptedAdvisor {
    fn advice(&self, _about: FailedCall) -> BoxFuture<'static, Option<LabeledText>> {
        let text = self.0.clone();
        async move { Some(LabeledText::plain(text)) }.boxed()
    }
}
