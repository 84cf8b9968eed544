//! What is told before anybody shows a token.

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
async fn one_card_speaks_for_both_versions_and_names_who_is_there() {
    let house = start_server("tools fs_read rag_retrieve").await;
    let client = house.client("ann").client;
    for path in PATHS {
        let response = client
            .get(format!("{}{path}", house.address))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let card: serde_json::Value =
            serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let read = AgentCard::from_json(&card).unwrap();
        assert_eq!(read.problems, Vec::<String>::new());
        let skills: Vec<&str> = read
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
        assert_eq!(card["url"], format!("{}/a2a", house.address));
        assert!(!card.to_string().contains("fs_read"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_can_be_kept_and_asked_for_again() {
    let house = start_server("").await;
    let client = house.client("ann").client;
    let get = || client.get(format!("{}{}", house.address, PATHS[0]));
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
async fn a_card_may_be_for_callers_only_and_names_the_public_address() {
    let a2a = A2aSettings {
        card: CardAudience::Callers,
        public_url: Some("https://lango.example.org/".to_owned()),
        ..A2aSettings::default()
    };
    let house = start_server_with(
        "",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = house.client("ann");
    let stranger = ann
        .client
        .get(format!("{}{}", house.address, PATHS[0]))
        .send()
        .await
        .unwrap();
    assert_eq!(stranger.status(), 401);
    let card = ann.send(ann.request("GET", PATHS[0])).await;
    assert_eq!(card.body["url"], "https://lango.example.org/a2a");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_told_more() {
    let house = start_server("tools fs_read").await;
    let ann = house.client("ann");
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
    let stranger = ann
        .client
        .get(format!("{}/a2a/extendedAgentCard", house.address))
        .send()
        .await
        .unwrap();
    assert_eq!(stranger.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_older_version_the_card_is_strict_and_its_methods_are_refused() {
    let a2a = A2aSettings {
        older_version: false,
        ..A2aSettings::default()
    };
    let house = start_server_with(
        "root always says hi",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = house.client("ann");
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
async fn what_is_turned_off_is_not_there() {
    let a2a = A2aSettings {
        is_enabled: false,
        ..A2aSettings::default()
    };
    let house = start_server_with(
        "",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = house.client("ann");
    assert_eq!(ann.send(ann.request("GET", PATHS[0])).await.status, 404);
    assert_eq!(ann.rest("GET", "/tasks", json!(null)).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn colleagues_out_of_reach_are_listed_as_such() {
    let house = start_server("root always says hi").await;
    let ann = house.client("ann");
    let listed = ann.send(ann.request("GET", "/api/agents")).await.body;
    let skipped = listed["skipped"].as_array().unwrap();
    assert!(
        skipped.contains(&json!({ "name": "far", "reason": "nobody answers there" })),
        "{listed}"
    );
}
