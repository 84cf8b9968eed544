//! The router serves exactly the records of the routes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use lango_domain::access_tokens::TokenScope::{Admin, Approve, Chat, Read};
use lango_domain::access_tokens::{AccessToken, TokenScope, token_value};
use lango_domain::event::Principal;
use lango_engine::{
    ApprovalPolicy, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks, TurnLimits,
};
use lango_store::{SqliteStore, StoreLocation};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script_runner;
use lango_testkit::scripted::{ScriptedModel, scripted_tool};

use super::*;
use crate::a2a::{A2aSettings, CardAudience};
use crate::gateway::{GatewayClockAndIds, GatewayParts, ServedTeam};
use crate::route::{ANY_METHOD, Route, RouteAccess};
use crate::settings::ServerSettings;
use lango_runtime::{ClientBridge, Runtime, RuntimeParts, TurnLimiter};

const METHODS: [&str; 5] = ["get", "post", "delete", "put", "patch"];

fn gateway(a2a: A2aSettings) -> Gateway {
    let stores = SqliteStore::open(StoreLocation::Memory).unwrap().stores();
    let tree = build_agent_tree(Config {
        tools: vec![scripted_tool("fs_read", &[])],
        ..Config::default()
    })
    .unwrap();
    let team = ServedTeam::from_tree(&tree);
    let runner = Runner::new(RunnerParts {
        tree,
        models: Models {
            default: Arc::new(ScriptedModel::new(HashMap::new(), 128_000)),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        blobs: Arc::new(InMemorySessionStore::default()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: script_runner::clock_and_ids(),
    });
    Gateway::new(GatewayParts {
        settings: ServerSettings {
            requests_per_minute: NonZeroU32::MAX,
            a2a,
            ..ServerSettings::default()
        },
        runtime: Runtime::new(RuntimeParts {
            runner,
            approver: None,
            limiter: TurnLimiter::unlimited(),
        }),
        client_bridge: ClientBridge::new(stores.clone(), Arc::new(Timestamp::now)),
        stores,
        team,
        delete_session_hook: Arc::new(|_, _| {}),
        clock_and_ids: GatewayClockAndIds {
            now: Arc::new(Timestamp::now),
            new_id: Arc::new(|| "id".to_owned()),
        },
    })
}

/// Adds a token and returns the value of its `Authorization` header.
async fn authorization(gateway: &Gateway, scope: TokenScope) -> String {
    let value = token_value(&[scope as u8; 32]);
    let token = AccessToken {
        name: scope.to_string(),
        principal: Principal::new("ann"),
        scopes: BTreeSet::from([scope]),
        created: Timestamp::now(),
        expires: None,
        used: None,
    };
    let tokens = &gateway.stores().access_tokens;
    tokens.add_token(token, &value).await.unwrap();
    format!("Bearer {}", value.expose())
}

/// Sends a request without a body, and returns the status and the body of the response.
async fn send(
    gateway: &Gateway,
    method: &str,
    path: &str,
    authorization: Option<&str>,
) -> (u16, String) {
    let path = path
        .replace("{session}", "none")
        .replace("{model}", "none")
        .replace("{*path}", "none");
    let mut request = Request::builder()
        .method(method.to_uppercase().as_str())
        .uri(path)
        .header(header::HOST, "127.0.0.1");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let request = request.body(Body::empty()).unwrap();
    let router = TowerToHyperService::new(gateway.router());
    let response = router.call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn all_a2a_settings() -> [A2aSettings; 3] {
    let callers = A2aSettings {
        card: CardAudience::Callers,
        ..A2aSettings::default()
    };
    let disabled = A2aSettings {
        is_enabled: false,
        ..A2aSettings::default()
    };
    [A2aSettings::default(), callers, disabled]
}

/// Each record answers a caller with its scope, and rejects callers without a token or scope.
#[tokio::test]
async fn every_record_answers_the_callers_it_names() {
    for settings in all_a2a_settings() {
        let gateway = gateway(settings.clone());
        let mut tokens = Vec::new();
        for scope in [Chat, Read, Approve, Admin] {
            tokens.push((scope, authorization(&gateway, scope).await));
        }
        for Route {
            endpoint,
            path,
            access,
            ..
        } in all_routes(&settings)
        {
            let method = match endpoint.method {
                ANY_METHOD => "get",
                method => method,
            };
            let (status, body) = send(&gateway, method, path, None).await;
            let is_rejected = status == 401 && body.contains("token.missing");
            let is_public = access == RouteAccess::Public;
            assert_eq!(is_rejected, !is_public, "{method} {path}: {status} {body}");
            for (scope, authorization) in &tokens {
                let (status, body) = send(&gateway, method, path, Some(authorization)).await;
                let name = format!("{method} {path} with {scope}: {status} {body}");
                let is_allowed = match access {
                    RouteAccess::Public | RouteAccess::AnyToken => true,
                    RouteAccess::Scopes(scopes) => *scope == Admin || scopes.contains(scope),
                };
                assert_eq!(status != 403, is_allowed, "{name}");
                assert!(
                    status != 405 && !body.contains("no route matches"),
                    "{name}"
                );
            }
        }
    }
}

/// The paths of the records answer no other methods, and disabled routes do not answer.
#[tokio::test]
async fn nothing_answers_without_a_record() {
    let paths: BTreeSet<&str> = all_routes(&A2aSettings::default())
        .iter()
        .map(|route| route.path)
        .collect();
    for settings in all_a2a_settings() {
        let gateway = gateway(settings.clone());
        let admin = authorization(&gateway, Admin).await;
        let routes = all_routes(&settings);
        for path in &paths {
            let methods: BTreeSet<&str> = routes
                .iter()
                .filter(|route| route.path == *path)
                .map(|route| route.endpoint.method)
                .collect();
            let is_missing =
                |method: &&str| !methods.contains(ANY_METHOD) && !methods.contains(method);
            for method in METHODS.iter().filter(|method| is_missing(method)) {
                let (status, body) = send(&gateway, method, path, Some(&admin)).await;
                let expected = if methods.is_empty() { 404 } else { 405 };
                assert_eq!(status, expected, "{method} {path}: {body}");
            }
        }
    }
}

/// No other module builds a router or a responder, so a route needs a record.
#[test]
fn routes_are_added_in_one_place() {
    // Each word with the one file that may use it.
    let words = [
        ("Router::new", "src/router.rs"),
        ("axum::routing", "src/route.rs"),
        ("MethodRouter", "src/route.rs"),
        ("route_service(", "none"),
        ("nest_service(", "none"),
        ("fallback_service(", "none"),
    ];
    for file in source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (word, home) in words {
            let is_allowed = file.ends_with(home) || !text.contains(word);
            assert!(is_allowed, "{} uses {word}", file.display());
        }
    }
}

/// The record in docs/adding-a-route.md is one of the records.
#[test]
fn the_guide_shows_a_record() {
    let trimmed = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let guide = include_str!("../../../../docs/adding-a-route.md");
    let example = guide.split("```").nth(1).unwrap();
    let example = trimmed(example.strip_prefix("rust").unwrap());
    assert!(
        trimmed(include_str!("../api.rs")).contains(&example),
        "{example}"
    );
}

/// Returns the source files in a folder, except this one.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if !path.ends_with("router/tests.rs") {
            files.push(path);
        }
    }
    files
}
