//! Agent cards of every protocol version.

use lango_remote::a2a::{AgentCard, ApiKeyLocation, Binding, ProtocolVersion, SecurityScheme};
use serde_json::{Value, json};

fn card_v1() -> Value {
    json!({
        "name": "Reisebüro", "description": "Plant Reisen.", "version": "2.1",
        "supportedInterfaces": [
            { "url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "x" },
            { "url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
        ],
        "capabilities": { "streaming": true, "extendedAgentCard": true,
            "extensions": [{ "uri": "https://e.example/x", "required": true }] },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "trip", "name": "Trip", "description": "Plans a trip.", "tags": ["travel"] }],
        "securitySchemes": {
            "b": { "httpAuthSecurityScheme": { "scheme": "bearer" } },
            "k": { "apiKeySecurityScheme": { "location": "header", "name": "X-Key" } },
            "m": { "mtlsSecurityScheme": {} },
        },
        "securityRequirements": [{ "schemes": { "b": { "list": ["read"] } } }, { "schemes": { "k": {} } }],
    })
}

fn card_v03() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "Old", "description": "d", "version": "1",
        "url": "https://o.example/", "preferredTransport": "HTTP+JSON",
        "additionalInterfaces": [
            { "url": "https://o.example/", "transport": "HTTP+JSON" },
            { "url": "https://o.example/rpc", "transport": "JSONRPC" },
        ],
        "capabilities": { "streaming": true, "pushNotifications": false },
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        "skills": [{ "id": "s", "name": "S", "description": "d", "tags": [] }],
        "supportsAuthenticatedExtendedCard": true,
        "securitySchemes": { "b": { "type": "http", "scheme": "Bearer" },
            "k": { "type": "apiKey", "in": "query", "name": "key" } },
        "security": [{ "b": [] }],
    })
}

#[test]
fn parses_cards_of_1_0() {
    let parsed = AgentCard::from_json(&card_v1()).unwrap();
    assert_eq!(parsed.problems, Vec::<String>::new());
    let card = parsed.card;
    assert_eq!(card.name, "Reisebüro");
    assert_eq!(card.interfaces[0].binding, Binding::JsonRpc);
    assert_eq!(
        card.interfaces[0].supported_version(),
        Some(ProtocolVersion::V1_0)
    );
    assert_eq!(card.interfaces[0].tenant.as_deref(), Some("x"));
    assert!(card.capabilities.streaming && card.capabilities.extended_card);
    assert!(card.capabilities.extensions[0].required);
    assert_eq!(
        card.security_schemes["b"],
        SecurityScheme::Http {
            scheme: "bearer".to_owned()
        }
    );
    assert_eq!(
        card.security_schemes["k"],
        SecurityScheme::ApiKey {
            location: ApiKeyLocation::Header,
            name: "X-Key".to_owned()
        }
    );
    assert_eq!(card.security[0].0["b"], ["read"]);
    assert_eq!(card.security.len(), 2);
}

#[test]
fn parses_cards_of_0_3() {
    let parsed = AgentCard::from_json(&card_v03()).unwrap();
    assert_eq!(parsed.problems, Vec::<String>::new());
    let interfaces: Vec<(&str, &str)> = parsed
        .card
        .interfaces
        .iter()
        .map(|interface| (interface.url.as_str(), interface.binding.as_str()))
        .collect();
    assert_eq!(
        interfaces,
        [
            ("https://o.example/", "HTTP+JSON"),
            ("https://o.example/rpc", "JSONRPC")
        ]
    );
    assert!(
        parsed
            .card
            .interfaces
            .iter()
            .all(|interface| interface.supported_version() == Some(ProtocolVersion::V0_3))
    );
    assert!(parsed.card.capabilities.extended_card);
    assert_eq!(parsed.card.security[0].0.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn one_card_covers_both_versions() {
    let mut merged = card_v1();
    for (name, value) in card_v03().as_object().unwrap() {
        if merged.get(name).is_none() {
            merged[name] = value.clone();
        }
    }
    let card = AgentCard::from_json(&merged).unwrap().card;
    let versions: Vec<_> = card
        .interfaces
        .iter()
        .filter_map(|interface| interface.supported_version())
        .collect();
    assert_eq!(
        versions,
        [
            ProtocolVersion::V1_0,
            ProtocolVersion::V1_0,
            ProtocolVersion::V0_3,
            ProtocolVersion::V0_3
        ]
    );
    let json = card.to_json();
    assert_eq!(json["url"], "https://o.example/");
    assert_eq!(json["preferredTransport"], "HTTP+JSON");
    assert_eq!(json["protocolVersion"], "0.3.0");
    assert_eq!(json["supportedInterfaces"].as_array().unwrap().len(), 4);
    assert_eq!(json["securitySchemes"]["b"]["type"], "http");
    assert_eq!(
        json["securitySchemes"]["b"]["httpAuthSecurityScheme"]["scheme"],
        "bearer"
    );
    assert_eq!(json["security"][0], json!({ "b": ["read"] }));
    assert_eq!(AgentCard::from_json(&json).unwrap().card, card);
}

#[test]
fn parses_incomplete_cards() {
    let early = json!({ "name": "early", "url": "http://e.example", "capabilities": {}, "skills": [{ "name": "x" }] });
    let parsed = AgentCard::from_json(&early).unwrap();
    assert_eq!(
        parsed.card.interfaces[0].supported_version(),
        Some(ProtocolVersion::V0_3)
    );
    assert!(
        parsed
            .problems
            .iter()
            .any(|problem| problem.contains("protocolVersion")),
        "{:?}",
        parsed.problems
    );
    assert!(
        parsed
            .problems
            .iter()
            .any(|problem| problem.contains("description"))
    );
    let version_0_2 = json!({ "name": "n", "url": "http://e.example", "protocolVersion": "0.2.5" });
    assert_eq!(
        AgentCard::from_json(&version_0_2).unwrap().card.interfaces[0].supported_version(),
        Some(ProtocolVersion::V0_3)
    );
    let version_2 = json!({ "name": "n", "url": "http://e.example", "protocolVersion": "2.0" });
    assert_eq!(
        AgentCard::from_json(&version_2).unwrap().card.interfaces[0].supported_version(),
        None
    );
}

#[test]
fn rejects_invalid_cards_with_the_field_path() {
    for (card, error) in [
        (json!([]), "must be an object"),
        (json!({ "url": "x" }), "`name` is missing"),
        (
            json!({ "name": "x" }),
            "`supportedInterfaces` is missing, and so is `url`: the agent has no URL",
        ),
        (json!({ "name": 3, "url": "x" }), "`name` must be a string"),
        (
            json!({ "name": "x", "url": "u", "skills": {} }),
            "`skills` must be an array",
        ),
        (
            json!({ "name": "x", "url": "u", "skills": [{ "tags": [1] }] }),
            "`skills[0].tags[0]` must be a string",
        ),
        (
            json!({ "name": "x", "url": "u", "capabilities": { "streaming": "yes" } }),
            "`capabilities.streaming` must be true or false",
        ),
        (
            json!({ "name": "x", "supportedInterfaces": [{ "protocolBinding": "JSONRPC" }] }),
            "`supportedInterfaces[0].url` is missing",
        ),
    ] {
        assert_eq!(
            AgentCard::from_json(&card).unwrap_err().to_string(),
            error,
            "{card}"
        );
    }
}

#[test]
fn reports_problems_of_cards() {
    let mut card = card_v03();
    card["skills"] = json!([{ "id": "s", "name": "a" }, { "id": "s", "name": "b" }]);
    card["security"] = json!([{ "undescribed": [] }]);
    let problems = AgentCard::from_json(&card).unwrap().problems.join("; ");
    assert!(
        problems.contains("two skills have the id `s`"),
        "{problems}"
    );
    assert!(
        problems.contains("security scheme `undescribed`"),
        "{problems}"
    );
}
