//! Agent cards.

use super::harness::{start_server, start_server_with};
use lango_gateway::{A2aSettings, CardAudience, ServerSettings};
use lango_remote::a2a::AgentCard;
use serde_json::json;

const PATHS: [&str; 4] = [
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/a2a/.well-known/agent-card.json",
    "/a2a/.well-known/agent.json",
];

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn one_card_serves_both_versions_and_lists_the_agents() {
    let server = start_server("tools fs_read rag_retrieve").await;
    let client = server.client("ann").client;
    for path in PATHS {
        let response = client
            .get(format!("{}{path}", server.address))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let card: serde_json::Value =
            serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let parsed = AgentCard::from_json(&card).unwrap();
        assert_eq!(parsed.problems, Vec::<String>::new());
        let skills: Vec<&str> = parsed
            .card
            .skills
            .iter()
            .map(|skill| skill.id.as_str())
            .collect();
        assert_eq!(skills, ["operator", "librarian", "planner"]);
        assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 4);
        assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
        assert_eq!(
            (&card["protocolVersion"], &card["preferredTransport"]),
            (&json!("0.3"), &json!("JSONRPC"))
        );
        assert_eq!(card["url"], format!("{}/a2a", server.address));
        assert!(!card.to_string().contains("fs_read"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_can_be_cached_and_revalidated() {
    let server = start_server("").await;
    let client = server.client("ann").client;
    let get = || client.get(format!("{}{}", server.address, PATHS[0]));
    let first = get().send().await.unwrap();
    let header = |name: &str| first.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("cache-control"), "public, max-age=300");
    assert!(header("last-modified").ends_with(" GMT"));
    let again = get()
        .header("if-none-match", header("etag"))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            again.status().as_u16(),
            again.text().await.unwrap().as_str()
        ),
        (304, "")
    );
    assert_eq!(
        get()
            .header("if-none-match", "\"other\"")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_can_require_a_token_and_contain_the_public_url() {
    let a2a = A2aSettings {
        card: CardAudience::Callers,
        public_url: Some("https://lango.example.org/".to_owned()),
        ..A2aSettings::default()
    };
    let server = start_server_with(
        "",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = server.client("ann");
    let anonymous = ann
        .client
        .get(format!("{}{}", server.address, PATHS[0]))
        .send()
        .await
        .unwrap();
    assert_eq!(anonymous.status(), 401);
    let card = ann.send(ann.request("GET", PATHS[0])).await;
    assert_eq!(card.body["url"], "https://lango.example.org/a2a");
}

#[tokio::test(flavor = "multi_thread")]
async fn authenticated_cards_have_more_details() {
    let server = start_server("tools fs_read").await;
    let ann = server.client("ann");
    let public = ann.send(ann.request("GET", PATHS[0])).await.body;
    let newer = ann.rpc("GetExtendedAgentCard", json!({})).await["result"].clone();
    let older = ann
        .rpc("agent/getAuthenticatedExtendedCard", json!({}))
        .await["result"]
        .clone();
    let rest = ann
        .rest("GET", "/extendedAgentCard", json!(null))
        .await
        .body;
    let older_rest = ann.rest("GET", "/v1/card", json!(null)).await.body;
    assert!(
        newer["skills"][0]["tags"].as_array().unwrap().len()
            > public["skills"][0]["tags"].as_array().unwrap().len()
    );
    assert!(newer == rest && older == older_rest);
    assert!(newer.get("url").is_none() && newer.get("security").is_none());
    assert_eq!(older["url"], public["url"]);
    let anonymous = ann
        .client
        .get(format!("{}/a2a/extendedAgentCard", server.address))
        .send()
        .await
        .unwrap();
    assert_eq!(anonymous.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_version_0_3_the_card_is_strict_and_old_methods_are_rejected() {
    let a2a = A2aSettings {
        older_version: false,
        ..A2aSettings::default()
    };
    let server = start_server_with(
        "root always says hi",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = server.client("ann");
    let card = ann.send(ann.request("GET", PATHS[0])).await.body;
    assert!(card.get("url").is_none() && card["securitySchemes"]["bearer"].get("type").is_none());
    assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 2);
    let message = super::harness::message_v03("m1", "hi");
    let older = ann.rpc("message/send", json!({ "message": message })).await;
    assert_eq!(older["error"]["code"], -32009);
    assert_eq!(
        ann.rest("GET", "/v1/tasks/x", json!(null)).await.status,
        400
    );
    assert_eq!(
        ann.ask("m2", "hi").await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_server_has_no_routes() {
    let a2a = A2aSettings {
        is_enabled: false,
        ..A2aSettings::default()
    };
    let server = start_server_with(
        "",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = server.client("ann");
    assert_eq!(ann.send(ann.request("GET", PATHS[0])).await.status, 404);
    assert_eq!(ann.rest("GET", "/tasks", json!(null)).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_agents_are_listed_as_skipped() {
    let server = start_server("root always says hi").await;
    let ann = server.client("ann");
    let listed = ann.send(ann.request("GET", "/api/agents")).await.body;
    let skipped = listed["skipped"].as_array().unwrap();
    assert!(
        skipped.contains(&json!({ "name": "far", "reason": "connection refused" })),
        "{listed}"
    );
}
