//! Scripted models, tools, approvers, hooks and remote agents.

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

/// A model that replies from the script, in order for each agent, and records its requests.
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

    /// Describes the replies of the script that were not requested.
    pub fn unused_replies(&self) -> Vec<String> {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = replies
            .iter()
            .filter(|(_, queue)| queue.iter().any(|reply| !reply.always));
        unused
            .map(|(agent, queue)| format!("{agent} had {} more replies", queue.len()))
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
                "malformed the script has no more replies for {agent}"
            ))],
        }
    }
}

#[expect(clippy::panic, reason = "some scripts test a model that panics")]
impl Model for ScriptedModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let parts = self.next(request.agent.as_str());
        let number = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request);
            requests.len()
        };
        if parts.contains(&ScriptedPart::Panics) {
            panic!("as scripted");
        }
        let hangs = parts.contains(&ScriptedPart::Hangs);
        let is_complete = !parts.contains(&ScriptedPart::BreaksOff);
        let fragments = parts
            .into_iter()
            .enumerate()
            .flat_map(move |(at, part)| fragments(part, &format!("c{number}.{at}")));
        let end = is_complete.then_some(Ok(Fragment::Done));
        if hangs {
            iter(fragments).chain(pending()).boxed()
        } else {
            iter(fragments.chain(end)).boxed()
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

/// Returns a tool with these behaviors. By default it is safe and returns "ok".
pub fn scripted_tool(name: &str, behaviors: &[ToolBehavior]) -> Tool {
    let safety = match () {
        () if behaviors.contains(&ToolBehavior::Dangerous) => Safety::Dangerous,
        () if behaviors.contains(&ToolBehavior::Moderate) => Safety::Moderate,
        () => Safety::Safe,
    };
    let owned = behaviors.to_vec();
    let mut tool = Tool::new(name, format!("Does {name}."), safety, move |_, _: Value| {
        run_behaviors(owned.clone())
    });
    tool.parameters = parameters(behaviors);
    if behaviors.contains(&ToolBehavior::Untrusted) {
        tool = tool.with_untrusted_output();
    }
    if behaviors.contains(&ToolBehavior::Private) {
        tool = tool.with_private_output();
    }
    if let Some(to) = behaviors.iter().find_map(ToolBehavior::sends_to) {
        tool = tool.with_outgoing(move |args: Value| OutgoingData {
            to: Destination::Configured(vec![to.clone()]),
            data: first_argument(&args),
        });
    }
    // The subject is the first argument; the pattern covers calls that start with the same word.
    tool.with_intent(move |_, args: Value| async move {
        let subject = first_argument(&args);
        let pattern = subject.split(' ').next().map(|word| format!("{word} *"));
        Ok(Intent {
            level: safety,
            shows: format!("would do {subject}"),
            subject,
            pattern,
        })
    })
}

/// Runs a tool call: the last `Returns` or `Fails` determines its output.
#[expect(clippy::panic, reason = "some scripts test a tool that panics")]
async fn run_behaviors(behaviors: Vec<ToolBehavior>) -> Result<String, ToolError> {
    let mut output = Ok("ok".to_owned());
    for behavior in behaviors {
        match behavior {
            ToolBehavior::Returns(text) => output = Ok(text),
            ToolBehavior::Fails(reason) => output = Err(ToolError(reason)),
            ToolBehavior::Panics => panic!("as scripted"),
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

fn first_argument(args: &Value) -> String {
    let first = args.as_object().and_then(|map| map.values().next());
    first.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parameters(behaviors: &[ToolBehavior]) -> Value {
    let wanted = behaviors.iter().find_map(|behavior| match behavior {
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

/// Decides from the script, in order; afterwards there is no one to approve.
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

/// A context source that always returns the same text.
pub struct ScriptedSource {
    pub name: String,
    pub text: String,
}

#[expect(clippy::panic, reason = "some scripts test a source that panics")]
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
                "fails" => Err(ContextError("as scripted".to_owned())),
                "hangs" => futures::future::pending().await,
                "panics" => panic!("as scripted"),
                _ => Ok(Some(LabeledText {
                    label: Label::private(&name),
                    text,
                })),
            }
        }
        .boxed()
    }
}

/// A remote agent with a scripted behavior.
pub struct ScriptedRemote(pub RemoteBehavior);

#[expect(clippy::panic, reason = "some scripts test a remote agent that panics")]
impl RemoteAgent for ScriptedRemote {
    fn stream(&self, _task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>> {
        match &self.0 {
            RemoteBehavior::Says(text) => iter([Ok(RemotePiece::Text(text.clone()))]).boxed(),
            RemoteBehavior::Fails(reason) => iter([Err(RemoteError(reason.clone()))]).boxed(),
            RemoteBehavior::Hangs => pending().boxed(),
            RemoteBehavior::Panics => panic!("as scripted"),
        }
    }
}

/// A digest source that returns the same digest for every session.
pub struct ScriptedDigest(pub Digest);

impl DigestSource for ScriptedDigest {
    fn digest(&self, _key: SessionKey) -> BoxFuture<'static, Result<Option<Digest>, ContextError>> {
        let digest = self.0.clone();
        async move { Ok(Some(digest)) }.boxed()
    }
}

/// An advisor that gives the same advice for every failure.
pub struct ScriptedAdvisor(pub String);

impl Advisor for ScriptedAdvisor {
    fn advice(&self, _call: FailedCall) -> BoxFuture<'static, Option<LabeledText>> {
        let text = self.0.clone();
        async move { Some(LabeledText::plain(text)) }.boxed()
    }
}
