//! A runtime with a scripted team.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::event::{ApprovalState, Event, EventBody, Principal, SessionId, Update, Usage};
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::session::{SessionKey, SessionStore};
use lango_engine::{InMemorySessionStore, Runner, TurnRequest};
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter, TurnSpec};
use lango_testkit::script::Script;
use lango_testkit::script_runner::script_runner;
use lango_testkit::scripted::{ScriptedApprover, ScriptedModel};

/// A scripted model whose tokens cost one cent each.
pub struct PricedModel(ScriptedModel);

impl Model for PricedModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let with_price = |fragment| match fragment {
            Fragment::Usage(usage) => Fragment::Usage(Usage {
                cost_usd: Some(usage.input as f64 / 100.0),
                ..usage
            }),
            other => other,
        };
        self.0.stream(request).map_ok(with_price).boxed()
    }

    fn window(&self) -> usize {
        self.0.window()
    }
}

pub fn runner(script: &str, store: Arc<dyn SessionStore>) -> Runner {
    let script = Script::parse(script).unwrap();
    let model = PricedModel(ScriptedModel::new(script.replies.clone(), 128_000));
    script_runner(&script, Arc::new(model), store).unwrap()
}

/// Returns a runtime without limits, whose approver gives these answers.
pub fn runtime(script: &str, answers: &[&str]) -> Runtime {
    let store = Arc::new(InMemorySessionStore::default());
    runtime_on(script, answers, store)
}

pub fn runtime_on(script: &str, answers: &[&str], store: Arc<dyn SessionStore>) -> Runtime {
    Runtime::new(RuntimeParts {
        runner: runner(script, store),
        approver: Some(approver(answers)),
        limiter: TurnLimiter::unlimited(),
    })
}

pub fn approver(answers: &[&str]) -> Arc<dyn Approver> {
    let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
    ScriptedApprover::new(&answers)
}

/// An approver that takes its time.
pub struct SlowApprover {
    pub delay: Duration,
    pub answer: Arc<dyn Approver>,
}

impl Approver for SlowApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let (delay, answer) = (self.delay, self.answer.ask(question));
        async move {
            tokio::time::sleep(delay).await;
            answer.await
        }
        .boxed()
    }
}

pub fn session_key() -> SessionKey {
    SessionKey {
        session: SessionId::new("s"),
        principal: Principal::local(),
    }
}

pub fn request(text: &str) -> TurnRequest {
    let SessionKey { session, principal } = session_key();
    TurnRequest::from_user(session, principal, text)
}

/// Runs a turn and returns its events.
pub async fn run(runtime: &Runtime, spec: TurnSpec) -> Vec<Arc<Event>> {
    let turn = runtime.start_turn(spec).unwrap();
    let events = turn.filter_map(async |update| match update {
        Update::Event(event) => Some(event),
        _ => None,
    });
    events.collect().await
}

/// Returns the states of all approval events.
pub fn approvals(events: &[Arc<Event>]) -> Vec<ApprovalState> {
    let state = |event: &Arc<Event>| match &event.body {
        EventBody::Approval { state, .. } => Some(*state),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

/// Returns `done`, or the code and the hint of the failure.
pub fn end(events: &[Arc<Event>]) -> (String, String) {
    match events.last().map(|event| &event.body) {
        Some(EventBody::TurnDone { .. }) => ("done".to_owned(), String::new()),
        Some(EventBody::TurnFailed { code, hint, .. }) => (code.to_string(), hint.clone()),
        other => panic!("the turn did not end: {other:?}"),
    }
}
