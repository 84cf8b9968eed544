//! The OpenAI-compatible API. A model is the whole team or a single agent.

pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod session_match;
mod stream_merge;

use axum::Json;
use axum::extract::State;
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::{self, Stream};
use lango_domain::access_tokens::TokenScope::Chat;
use lango_domain::event::Update;
use lango_domain::session::SessionKey;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use session_match::SessionClaims;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{JsonBody, PathName};
use crate::gateway::Gateway;
use crate::openapi::schemas::ChatFrame;
use crate::route::{
    Operation, RequestInput, ResponseOutput, Route, RouteAccess, RouteDescription, get, post,
    schema_of,
};
use crate::sse;
use chat::{ChatBody, ChatRequest, ResponseMode};
use completion::{Completion, CompletionBody, TurnAccumulator};
use lango_engine::TurnRequest;
use lango_runtime::{TurnHandle, TurnSpec};

/// The data of the last event of a stream, which is not JSON.
pub(crate) const DONE_MARKER: &str = "[DONE]";
/// The model name of the whole team.
pub(crate) const TEAM_MODEL: &str = "lango";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(list_models),
            path: "/v1/models",
            access: RouteAccess::Scopes(&[Chat]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Lists the models: the team and each of its agents.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<ModelList>),
                failure_statuses: &[],
            }),
        },
        Route {
            endpoint: get(get_model),
            path: "/v1/models/{model}",
            access: RouteAccess::Scopes(&[Chat]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns a model.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<ModelItem>),
                failure_statuses: &[404],
            }),
        },
        Route {
            endpoint: post(create_completion),
            path: "/v1/chat/completions",
            access: RouteAccess::Scopes(&[Chat]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Answers a conversation, as one response or as a stream.",
                input: RequestInput::Body(schema_of::<ChatBody>),
                output: ResponseOutput::JsonOrEvents(
                    schema_of::<CompletionBody>,
                    schema_of::<ChatFrame>,
                ),
                failure_statuses: &[404, 422, 502, 503],
            }),
        },
    ]
}

/// The list of models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelList {
    #[schemars(extend("const" = "list"))]
    pub object: &'static str,
    pub data: Vec<ModelItem>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelItem {
    pub id: String,
    #[schemars(extend("const" = "model"))]
    pub object: &'static str,
    pub created: i64,
    pub owned_by: &'static str,
    pub description: String,
}

async fn list_models(State(gateway): State<Gateway>) -> Json<ModelList> {
    Json(ModelList {
        object: "list",
        data: all_models(&gateway),
    })
}

async fn get_model(
    State(gateway): State<Gateway>,
    PathName(name): PathName,
) -> Result<Json<ModelItem>, ApiError> {
    all_models(&gateway)
        .into_iter()
        .find(|model| model.id == name)
        .map(Json)
        .ok_or_else(|| chat::model_not_found(&gateway.team(), &name))
}

fn all_models(gateway: &Gateway) -> Vec<ModelItem> {
    let item = |id: &str, description: &str| ModelItem {
        id: id.to_owned(),
        object: "model",
        created: 0,
        owned_by: "lango",
        description: description.to_owned(),
    };
    let team = gateway.team();
    let whole_team = item(
        TEAM_MODEL,
        "The whole team; each request goes to the agent that fits.",
    );
    let agents = team
        .specialists()
        .map(|agent| item(&agent.name, &agent.description));
    std::iter::once(whole_team).chain(agents).collect()
}

async fn create_completion(
    State(gateway): State<Gateway>,
    caller: Caller,
    JsonBody(body): JsonBody<ChatBody>,
) -> Result<Response, ApiError> {
    let mut chat = ChatRequest::parse(body, &gateway.team())?;
    // The history is compared with logs, which contain no secrets, and may be imported.
    gateway
        .runtime()
        .redact(caller.principal(), &mut chat)
        .await?;
    let matched =
        session_match::find_or_create_session(&gateway, caller.principal(), &chat).await?;
    let key = SessionKey {
        principal: caller.principal().clone(),
        session: matched.session.clone(),
    };
    // The client's system prompt is sent with the first request; after that it is in the log.
    let has_new_context = matched.is_new && !chat.system.is_empty();
    let client_context = has_new_context.then(|| {
        gateway
            .client_bridge()
            .client_context()
            .insert(&key, chat.system.clone())
    });
    let request = TurnRequest::from_user(key.session, key.principal, chat.request);
    let turn = gateway.start_turn(TurnSpec {
        target: chat.target,
        ..TurnSpec::request(request)
    })?;
    drop(matched.claim);
    let completion = Completion {
        id: format!("chatcmpl-{}", gateway.new_id()),
        created: gateway.now().as_second(),
        model: chat.model,
        session: matched.session.to_string(),
    };
    let completion_stream = CompletionStream {
        turn,
        accumulator: TurnAccumulator::default(),
        completion,
        _client_context: client_context,
    };
    match chat.response_mode {
        ResponseMode::Full => completion_stream.full_response().await,
        ResponseMode::Stream { usage } => Ok(sse::stream(
            &gateway,
            &caller,
            completion_stream.frames(usage),
        )),
    }
}

/// A completion in progress.
struct CompletionStream {
    turn: TurnHandle,
    accumulator: TurnAccumulator,
    completion: Completion,
    _client_context: Option<lango_runtime::client_context::ClientContextGuard>,
}

impl CompletionStream {
    async fn full_response(mut self) -> Result<Response, ApiError> {
        while let Some(update) = self.turn.next().await {
            self.accumulator.push(&update);
        }
        self.accumulator.finish();
        match self.accumulator.failure() {
            Some(error) => Err(error),
            None => Ok(Json(self.completion.full(&self.accumulator)).into_response()),
        }
    }

    /// Returns the frames: the role, the text as it is generated, then the finish reason or an error.
    fn frames(self, usage: chat::IncludeUsage) -> impl Stream<Item = Frame> + Send {
        let first = frame(&self.completion.first_chunk());
        let rest = stream::unfold(Some(self), move |state| async move {
            let mut state = state?;
            let (frames, next) = match state.turn.next().await {
                Some(update) => (state.update_frames(&update), Some(state)),
                None => (state.final_frames(usage), None),
            };
            Some((stream::iter(frames), next))
        });
        stream::once(async { first }).chain(rest.flatten())
    }

    fn update_frames(&mut self, update: &Update) -> Vec<Frame> {
        let pieces = self.accumulator.push(update);
        pieces
            .into_iter()
            .map(|piece| frame(&self.completion.text_chunk(piece)))
            .collect()
    }

    fn final_frames(&mut self, usage: chat::IncludeUsage) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self
            .accumulator
            .finish()
            .into_iter()
            .map(|piece| frame(&self.completion.text_chunk(piece)))
            .collect();
        match self.accumulator.failure() {
            Some(error) => frames.push(frame(&error.body())),
            None => frames.push(frame(&self.completion.last_chunk(&self.accumulator))),
        }
        if usage == chat::IncludeUsage::Yes {
            frames.push(frame(&self.completion.usage_chunk(&self.accumulator)));
        }
        frames.push(Frame::default().data(DONE_MARKER));
        frames
    }
}

fn frame(value: &impl Serialize) -> Frame {
    Frame::default().data(serde_json::to_string(value).unwrap_or_default())
}
