//! The tools of the vault agent.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use lango_domain::secret::Secret;
use lango_domain::{Safety, SecretSource as _, SecretUse, Tool};
use lango_testkit::tool_context_for;
use lango_vault::{LazyVault, SecretPrompt, SharedPrompt, VaultSecrets, VaultTools};
use serde_json::{Value, json};

use crate::setup::{VaultHarness, me, name, set};

struct ToolHarness {
    vault: VaultHarness,
    secrets: Arc<VaultSecrets>,
    prompt: SharedPrompt,
    tools: Vec<Tool>,
}

struct Typed(Option<&'static str>);

impl SecretPrompt for Typed {
    fn ask(&self, _: String) -> BoxFuture<'_, Option<Secret>> {
        std::future::ready(self.0.map(Secret::new)).boxed()
    }
}

impl ToolHarness {
    fn new() -> Self {
        let vault = VaultHarness::new();
        let secrets = Arc::new(VaultSecrets::new(vault.vault()));
        let prompt = SharedPrompt::default();
        let tools = lango_vault::tools(&VaultTools {
            vault: LazyVault::ready(Arc::clone(&secrets)),
            prompt: prompt.clone(),
        });
        Self {
            vault,
            secrets,
            prompt,
            tools,
        }
    }

    fn tool(&self, name: &str) -> &Tool {
        self.tools.iter().find(|tool| tool.name == name).unwrap()
    }

    async fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        let called = self.tool(tool).call(tool_context_for("vault"), args).await;
        called
            .map(|output| output.content.text)
            .map_err(|error| error.0)
    }

    async fn shows(&self, tool: &str, args: Value) -> Result<String, String> {
        let intent = self
            .tool(tool)
            .intent(tool_context_for("vault"), args)
            .await;
        intent.map(|intent| intent.shows).map_err(|error| error.0)
    }
}

/// S86
#[test]
fn the_tools_have_their_levels() {
    let harness = ToolHarness::new();
    let levels: Vec<(&str, Safety)> = harness
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.safety))
        .collect();
    assert_eq!(
        levels,
        [
            ("crypto_hash", Safety::Safe),
            ("crypto_sign", Safety::Dangerous),
            ("crypto_verify", Safety::Safe),
            ("crypto_encrypt", Safety::Moderate),
            ("crypto_decrypt", Safety::Dangerous),
            ("crypto_keys", Safety::Safe),
            ("secrets_store", Safety::Dangerous),
            ("secrets_get", Safety::Moderate),
            ("secrets_list", Safety::Safe),
            ("secrets_delete", Safety::Dangerous),
        ]
    );
}

#[tokio::test]
async fn hashes_need_no_vault() {
    let harness = ToolHarness::new();
    let hash = |args| harness.call("crypto_hash", args);
    assert_eq!(
        hash(json!({ "data": "hello" })).await.unwrap(),
        "sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    );
    assert_eq!(
        hash(json!({ "data": "0x68656c6c6f", "form": "hex", "algorithm": "keccak256" }))
            .await
            .unwrap(),
        "keccak256: 1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"
    );
    assert!(hash(json!({ "data": "xyz", "form": "hex" })).await.is_err());
    assert!(
        hash(json!({ "data": "x", "algorithm": "md5" }))
            .await
            .is_err()
    );
    assert!(!harness.vault.key_file().exists());
}

#[tokio::test]
async fn signatures_are_made_and_checked() {
    let harness = ToolHarness::new();
    let shown = harness
        .shows("crypto_sign", json!({ "data": "hello" }))
        .await
        .unwrap();
    assert_eq!(shown, "signs with the key `signing`:\nhello");
    let signed = harness
        .call("crypto_sign", json!({ "data": "hello" }))
        .await
        .unwrap();
    let field = |name: &str| {
        let line = signed.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(": ").unwrap().1.to_owned()
    };
    let (signature, public_key) = (field("signature"), field("public_key"));
    for args in [
        json!({ "data": "hello", "signature": signature }),
        json!({ "data": "hello", "signature": signature, "key_id": "signing" }),
        json!({ "data": "hello", "signature": signature, "public_key": public_key }),
    ] {
        let verified = harness.call("crypto_verify", args).await.unwrap();
        assert!(verified.starts_with("valid: "), "{verified}");
    }
    let other = json!({ "data": "hullo", "signature": signature });
    let verified = harness.call("crypto_verify", other).await.unwrap();
    assert!(verified.starts_with("not valid"), "{verified}");
    for args in [
        json!({ "data": "hello", "signature": "?" }),
        json!({ "data": "hello", "signature": signature, "key_id": "none" }),
        json!({ "data": "hello", "signature": signature, "public_key": "abc" }),
        json!({ "data": "hello", "signature": signature, "key_id": "signing", "public_key": public_key }),
    ] {
        assert!(
            harness.call("crypto_verify", args.clone()).await.is_err(),
            "{args}"
        );
    }
    let keys = harness.call("crypto_keys", json!({})).await.unwrap();
    assert!(
        keys.starts_with("signing (sign, ed25519), version 1, public key "),
        "{keys}"
    );
}

/// B130
#[tokio::test]
async fn a_decrypted_text_is_a_reference() {
    let harness = ToolHarness::new();
    let args = json!({ "data": "canary-text" });
    let encrypted = harness.call("crypto_encrypt", args).await.unwrap();
    assert!(!encrypted.contains("canary"));
    let args = json!({ "ciphertext": encrypted });
    let answer = harness.call("crypto_decrypt", args).await.unwrap();
    assert!(
        answer.starts_with("{{decrypt:") && !answer.contains("canary"),
        "{answer}"
    );
    let references = lango_domain::SecretReference::find_all(&answer).unwrap();
    let usage = SecretUse {
        principal: me(),
        tool: "exec_shell".to_owned(),
        hosts: Vec::new(),
    };
    let value = harness
        .secrets
        .resolve(&references[0], &usage)
        .await
        .unwrap();
    assert_eq!(value, Secret::new("canary-text"));
}

/// B130
#[tokio::test]
async fn a_typed_secret_never_reaches_the_model() {
    let harness = ToolHarness::new();
    let args = json!({ "name": "TOKEN", "hosts": ["api.github.com"], "tools": ["exec_shell"] });
    // Without a terminal, no question is asked that could not be answered.
    let error = harness
        .shows("secrets_store", args.clone())
        .await
        .unwrap_err();
    assert!(error.contains("`lango secret set TOKEN`"), "{error}");
    let error = harness
        .call("secrets_store", args.clone())
        .await
        .unwrap_err();
    assert!(error.contains("`lango secret set TOKEN`"), "{error}");
    harness.prompt.set(Arc::new(Typed(Some("canary-value"))));
    let shown = harness.shows("secrets_store", args.clone()).await.unwrap();
    assert_eq!(
        shown,
        "stores the secret `TOKEN`, with a value that you type next; no model sees it\n\
        for tools: exec_shell; for hosts: api.github.com"
    );
    let mut prompted = args;
    prompted["from"] = "prompt".into();
    let answer = harness.call("secrets_store", prompted).await.unwrap();
    assert_eq!(
        answer,
        "Stored the secret `TOKEN`. Use it as {{secret:TOKEN}}."
    );
    let listed = harness.call("secrets_list", json!({})).await.unwrap();
    assert_eq!(
        listed,
        "TOKEN (never used; for tools: exec_shell; for hosts: api.github.com)"
    );
    for name in ["TOKEN", "{{secret:TOKEN}}"] {
        let got = harness
            .call("secrets_get", json!({ "name": name }))
            .await
            .unwrap();
        assert!(
            got.starts_with("{{secret:TOKEN}}\n") && !got.contains("canary"),
            "{got}"
        );
    }
    let redactor = harness.secrets.redactor(&me()).await.unwrap();
    assert_eq!(
        redactor.redact("canary-value"),
        "[secret TOKEN: set, hidden]"
    );
}

#[tokio::test]
async fn a_cancelled_prompt_stores_nothing() {
    let harness = ToolHarness::new();
    harness.prompt.set(Arc::new(Typed(None)));
    let error = harness
        .call("secrets_store", json!({ "name": "TOKEN" }))
        .await
        .unwrap_err();
    assert!(error.contains("nothing was stored"), "{error}");
    assert!(!harness.vault.key_file().exists());
}

/// B130
#[tokio::test]
async fn a_value_from_the_conversation_is_stored_with_a_warning() {
    let harness = ToolHarness::new();
    let args = json!({ "name": "TOKEN", "value": "canary-value" });
    let shown = harness.shows("secrets_store", args.clone()).await.unwrap();
    assert!(shown.contains("with a value from this conversation") && !shown.contains("canary"));
    let answer = harness.call("secrets_store", args).await.unwrap();
    assert!(
        answer.contains("`lango secret set TOKEN`") && !answer.contains("canary"),
        "{answer}"
    );
    let both = json!({ "name": "TOKEN", "value": "canary-value", "from": "prompt" });
    assert!(harness.call("secrets_store", both).await.is_err());
    let wrong = json!({ "name": "TOKEN", "value": ["canary-value"] });
    let error = harness.call("secrets_store", wrong).await.unwrap_err();
    assert!(!error.contains("canary"), "{error}");
    // The engine knows from the schema that the argument is not to be stored.
    let parameters = &harness.tool("secrets_store").parameters;
    assert!(lango_domain::secret::is_secret(
        &parameters["properties"]["value"]
    ));
}

#[tokio::test]
async fn deleting_names_what_is_deleted() {
    let harness = ToolHarness::new();
    set(harness.secrets.vault(), "TOKEN", "value-1").await;
    let shown = harness
        .shows("secrets_delete", json!({ "name": "TOKEN" }))
        .await
        .unwrap();
    assert!(shown.starts_with("deletes the secret `TOKEN`"), "{shown}");
    for tool in ["secrets_delete", "secrets_get"] {
        let error = harness
            .call(tool, json!({ "name": "TOKN" }))
            .await
            .unwrap_err();
        assert_eq!(error, "there is no secret `TOKN`; did you mean `TOKEN`?");
        let error = harness
            .call(tool, json!({ "name": "a b" }))
            .await
            .unwrap_err();
        assert!(error.contains("begins with a letter"), "{error}");
    }
    let answer = harness
        .call("secrets_delete", json!({ "name": "TOKEN" }))
        .await
        .unwrap();
    assert_eq!(answer, "Deleted the secret `TOKEN`.");
    assert!(
        harness
            .secrets
            .vault()
            .secret(&me(), &name("TOKEN"))
            .await
            .is_err()
    );
}
