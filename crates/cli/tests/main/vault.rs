//! `lango vault`, `lango secret` and `lango key`, and the tools of the vault through a turn.

mod faults;

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::ask::provider_dir;
use crate::setup::{CommandRun, TestDir, lango};

const CANARY: &str = "canary-7f3a-value";

fn set(dir: &TestDir, name: &str, value: &str, options: &[&str]) -> CommandRun {
    let args = [&["secret", "set", name, "--json"], options].concat();
    dir.lango_with_input(&args, value.as_bytes())
}

/// Returns the text of every file below a folder that contains the text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// B130
#[test]
fn secrets_are_set_listed_bound_and_removed() {
    let dir = TestDir::new();
    assert_eq!(
        dir.lango(&["secret", "list", "--json"]).json(),
        json!({ "items": [] })
    );
    assert_eq!(
        dir.lango(&["vault", "status", "--json"]).json()["state"],
        "empty"
    );
    let stored = set(
        &dir,
        "GITHUB_TOKEN",
        &format!("{CANARY}\n"),
        &["--host", "api.github.com"],
    );
    assert_eq!(stored.exit, 0, "{}", stored.stderr);
    assert_eq!(stored.json()["replaced"], false);
    let listed = dir.lango(&["secret", "list", "--json"]).json();
    let item = &listed["items"][0];
    assert_eq!(item["name"], "GITHUB_TOKEN");
    assert_eq!(
        (&item["tools"], &item["hosts"]),
        (&json!([]), &json!(["api.github.com"]))
    );
    assert!(item["created"].is_string() && item["used"].is_null());
    let bound = dir.lango(&[
        "secret",
        "bind",
        "GITHUB_TOKEN",
        "--tool",
        "exec_shell",
        "--json",
    ]);
    assert_eq!(bound.json()["hosts"], json!(["api.github.com"]));
    assert_eq!(bound.json()["tools"], json!(["exec_shell"]));
    let plain = dir.lango(&["secret", "list"]).stdout;
    assert!(plain.contains("GITHUB_TOKEN") && plain.contains("for exec_shell at api.github.com"));
    assert_eq!(
        files_with(&dir.path().join("home"), CANARY),
        Vec::<String>::new()
    );
    let removed = dir.lango(&["secret", "remove", "GITHUB_TOKEN", "NONE", "--json"]);
    assert_eq!(
        (removed.exit, removed.error()["code"].as_str()),
        (2, Some("usage"))
    );
    assert_eq!(dir.lango(&["secret", "remove", "GITHUB_TOKEN"]).exit, 0);
    assert_eq!(
        dir.lango(&["secret", "list", "--json"]).json(),
        json!({ "items": [] })
    );
}

#[test]
fn wrong_names_hosts_and_values_are_refused() {
    let dir = TestDir::new();
    dir.write("empty", "\n");
    for (args, part) in [
        (&["secret", "set", "a b"][..], "begins with a letter"),
        (
            &["secret", "set", "A", "--host", "https://x.example"],
            "is not a host",
        ),
        (
            &["secret", "set", "A", "--tool", "a b"],
            "is not the name of a tool",
        ),
        (
            &["secret", "set", "A", "--from-file", "missing"],
            "cannot read missing",
        ),
        (
            &["secret", "set", "A", "--from-file", "empty"],
            "the value is empty",
        ),
        (&["secret", "set", "A"], "the value is empty"),
        (&["secret", "bind", "A"], "nothing to change"),
        (
            &["secret", "bind", "A", "--any-host"],
            "there is no secret `A`",
        ),
        (&["key", "create", "1"], "begins with a letter"),
        (&["key", "rotate", "A"], "there is no key `A`"),
        (&["vault", "unlock"], "the vault is empty"),
        (&["vault", "lock"], "the vault is empty"),
        (&["vault", "export", "x"], "there is no terminal to ask for"),
        (&["vault", "passphrase"], "there is no terminal to ask for"),
        (&["vault", "key-file", "--remove"], "the vault is empty"),
    ] {
        let run = dir.lango_with_input(args, b"");
        assert_eq!(run.exit, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{args:?}: {}", run.stderr);
    }
    let long = "x".repeat(70_000);
    assert!(set(&dir, "A", &long, &[]).stderr.contains("the value has"));
    let short = set(&dir, "PIN", "1234", &[]);
    assert!(
        short.exit == 0 && short.stderr.contains("so short"),
        "{}",
        short.stderr
    );
    dir.write("value", "line 1\nline 2\n");
    assert_eq!(
        set(&dir, "PEM", "ignored", &["--from-file", "value"]).exit,
        0
    );
}

#[test]
fn a_passphrase_locks_the_vault() {
    let dir = TestDir::new();
    set(&dir, "TOKEN", CANARY, &[]);
    let doctor = dir.lango(&["doctor", "--json"]).json();
    let check = |doctor: &Value| -> Value {
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "vault").unwrap()["status"].clone()
    };
    assert_eq!(check(&doctor), "warn");
    let run = dir.lango_with_input(&["vault", "passphrase", "--only"], b"correct horse\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(!dir.path().join("home/vault.key").exists());
    assert_eq!(check(&dir.lango(&["doctor", "--json"]).json()), "pass");
    assert_eq!(
        dir.lango(&["vault", "status", "--json"]).json()["state"],
        "locked"
    );
    // Names are listed, values cannot be changed.
    assert!(dir.lango(&["secret", "list"]).stdout.contains("TOKEN"));
    let locked = set(&dir, "TOKEN", "new value", &[]);
    assert_eq!(
        (locked.exit, locked.error()["code"].as_str()),
        (5, Some("denied"))
    );
    assert!(locked.stderr.contains("lango vault unlock"));
    let key = dir.lango_with_input(&["key", "create", "release"], b"wrong horse\n");
    assert_eq!(key.exit, 5);
    assert!(
        key.stderr.contains("the passphrase is wrong"),
        "{}",
        key.stderr
    );
    dir.write("passphrase", "correct horse\n");
    let file = dir.path().join("passphrase");
    let variables = [("LANGO_VAULT_PASSPHRASE_FILE", file.to_str().unwrap())];
    let status = dir
        .lango_with(&["vault", "status", "--json"], &variables)
        .json();
    assert_eq!(status["opened_by"], "passphrase-file");
    // Another passphrase, then a key file again.
    let run = dir.lango_with_input(&["vault", "passphrase"], b"correct horse\nnew passphrase\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert_eq!(
        dir.lango_with_input(&["vault", "key-file"], b"correct horse\n")
            .exit,
        5
    );
    assert_eq!(
        dir.lango_with_input(&["vault", "key-file"], b"new passphrase\n")
            .exit,
        0
    );
    assert_eq!(
        dir.lango(&["vault", "status", "--json"]).json()["opened_by"],
        "key-file"
    );
    assert_eq!(dir.lango(&["vault", "passphrase", "--remove"]).exit, 0);
    assert_eq!(dir.lango(&["vault", "passphrase", "--remove"]).exit, 2);
}

#[test]
fn unlocking_holds_for_other_processes() {
    let dir = TestDir::new();
    let runtime = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap())];
    set(&dir, "TOKEN", CANARY, &[]);
    dir.lango_with_input(&["vault", "passphrase", "--only"], b"correct horse\n");
    let run = dir.lango_with_input(&["vault", "unlock"], b"correct horse\n");
    assert!(
        run.exit == 1 && run.stderr.contains("XDG_RUNTIME_DIR"),
        "{}",
        run.stderr
    );
    let run = dir.lango_with_all(
        &["vault", "unlock", "--minutes", "5"],
        &variables,
        b"correct horse\n",
    );
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let run = dir.lango_with_all(&["secret", "set", "TOKEN"], &variables, b"new value");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let status = dir
        .lango_with(&["vault", "status", "--json"], &variables)
        .json();
    assert_eq!(status["opened_by"], "unlock");
    assert_eq!(dir.lango_with(&["vault", "lock"], &variables).exit, 0);
    let status = dir
        .lango_with(&["vault", "status", "--json"], &variables)
        .json();
    assert_eq!(status["state"], "locked");
}

#[test]
fn keys_are_created_rotated_and_exported() {
    let dir = TestDir::new();
    let created = dir.lango(&["key", "create", "release", "--json"]).json();
    assert_eq!(
        (&created["algorithm"], &created["version"]),
        (&json!("ed25519"), &json!(1))
    );
    assert_eq!(dir.lango(&["key", "create", "release"]).exit, 2);
    assert_eq!(
        dir.lango(&["key", "rotate", "release", "--json"]).json()["version"],
        2
    );
    dir.lango(&["key", "create", "box", "--purpose", "encrypt"]);
    let keys = dir.lango(&["key", "list", "--json"]).json();
    assert_eq!(keys["items"].as_array().unwrap().len(), 2);
    let args = [
        "key",
        "export-public",
        "release",
        "--version",
        "1",
        "--json",
    ];
    let exported = dir.lango(&args).json();
    assert_eq!(exported["public_key"], created["public_key"]);
    let pem = dir.lango(&["key", "export-public", "release"]).stdout;
    assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{pem}");
    for args in [
        &["key", "export-public", "box"][..],
        &["key", "export-public", "release", "--version", "9"],
        &["key", "export-public", "none"],
    ] {
        assert_eq!(dir.lango(args).exit, 2, "{args:?}");
    }
}

#[test]
fn an_export_is_imported_elsewhere() {
    let (from, to) = (TestDir::new(), TestDir::new());
    set(&from, "TOKEN", CANARY, &["--host", "api.github.com"]);
    let file = from.path().join("vault.export");
    let path = file.to_str().unwrap();
    let run = from.lango_with_input(&["vault", "export", path], b"export passphrase\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert_eq!(
        from.lango_with_input(&["vault", "export", path], b"export passphrase\n")
            .exit,
        2
    );
    let import = ["vault", "import", path, "--json"];
    let wrong = to.lango_with_input(&import, b"wrong passphrase\n");
    assert_eq!(wrong.exit, 2);
    assert_eq!(
        to.lango(&["vault", "status", "--json"]).json()["state"],
        "empty"
    );
    let report = to.lango_with_input(&import, b"export passphrase\n").json();
    assert_eq!(report["added"], json!(["secret TOKEN"]));
    let listed = to.lango(&["secret", "list", "--json"]).json();
    assert_eq!(listed["items"][0]["hosts"], json!(["api.github.com"]));
    set(&to, "TOKEN", "own value", &[]);
    let report = to.lango_with_input(&import, b"export passphrase\n").json();
    assert_eq!(report["kept"], json!(["secret TOKEN"]));
    let args = ["vault", "import", path, "--replace", "--json"];
    let report = to.lango_with_input(&args, b"export passphrase\n").json();
    assert_eq!(report["replaced"], json!(["secret TOKEN"]));
}

/// S86: the vault is in the team of a new machine.
#[test]
fn the_vault_is_in_the_team() {
    let agents = lango(&["agent", "list", "--json"]).json();
    let tools = |agents: &Value| -> Vec<String> {
        let agents = agents["agents"].as_array().unwrap();
        let vault = agents.iter().find(|agent| agent["name"] == "vault");
        let tools = vault.map_or(&Value::Null, |vault| &vault["tools"]);
        serde_json::from_value(tools.clone()).unwrap_or_default()
    };
    assert_eq!(tools(&agents).len(), 10, "{:?}", tools(&agents));
    let args = [
        "agent",
        "list",
        "--json",
        "--set",
        "security.vault.enabled=false",
    ];
    assert_eq!(tools(&lango(&args).json()), Vec::<String>::new());
}

#[test]
fn the_offline_model_uses_the_vault() {
    let dir = TestDir::new();
    let ask = |text: &str| dir.lango(&["ask", "--yes", "--provider", "offline", text]);
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    for text in [
        "sha256 of hello",
        "what is the sha256 hash of hello",
        "hash hello",
    ] {
        let run = ask(text);
        assert!(
            run.stdout.contains(hash),
            "{text}: {}{}",
            run.stdout,
            run.stderr
        );
    }
    let run = ask("hash hello with blake3");
    assert!(
        run.stdout
            .contains("blake3: ea8f163db38682925e4491c5e58d4bb3"),
        "{}",
        run.stdout
    );
    assert!(
        ask("what secrets do I have")
            .stdout
            .contains("There are no secrets")
    );
    // Without a terminal the value cannot be typed, and the answer names the command that can.
    let run = ask("store a secret named GITHUB_TOKEN");
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("lango secret set GITHUB_TOKEN"), "{said}");
    set(&dir, "GITHUB_TOKEN", CANARY, &[]);
    assert!(
        ask("what secrets do I have")
            .stdout
            .contains("GITHUB_TOKEN")
    );
    let run = ask("show me the secret GITHUB_TOKEN");
    assert!(
        run.stdout.contains("{{secret:GITHUB_TOKEN}}"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains(CANARY));
    assert!(
        ask("delete the secret GITHUB_TOKEN")
            .stdout
            .contains("Deleted")
    );
    assert_eq!(
        files_with(&dir.path().join("home"), CANARY),
        Vec::<String>::new()
    );
}

#[test]
fn the_offline_model_signs_and_encrypts() {
    let dir = TestDir::new();
    let ask = |text: &str| dir.lango(&["ask", "--yes", "--provider", "offline", text]);
    let unknown = ask("sign hello with key release").stdout;
    assert!(unknown.contains("there is no key `release`"), "{unknown}");
    let signed = ask("sign hello").stdout;
    let line = signed
        .lines()
        .find_map(|line| line.split_once("signature: "));
    let signature = line
        .unwrap_or_else(|| panic!("{signed}"))
        .1
        .trim()
        .to_owned();
    let verified = ask(&format!("verify the signature {signature} of hello")).stdout;
    assert!(
        verified.contains("valid: signed with the key `signing`"),
        "{verified}"
    );
    let encrypted = ask("encrypt hello world").stdout;
    assert!(
        encrypted.contains("lango-encrypted-1:encryption:1:"),
        "{encrypted}"
    );
}

/// B130: a value that a model passes on is stored in the vault only.
#[test]
fn a_secret_argument_is_in_no_event_and_no_request() {
    // Too short to be recognized in texts, so only the argument itself is hidden.
    for value in [CANARY, "pin9"] {
        let server = ModelServer::start(vec![
            ServerReply::tool_call("transfer_to_agent", &json!({ "agent_name": "vault" })),
            ServerReply::tool_call("secrets_store", &json!({ "name": "TOKEN", "value": value })),
            ServerReply::text("Stored."),
        ])
        .unwrap();
        let dir = provider_dir(&server);
        let run = dir.lango(&["ask", "--json", "--yes", "keep the token that I gave you"]);
        assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("[set, hidden]"), "{}", run.stdout);
        let listed = dir.lango(&["secret", "list", "--json"]).json();
        assert_eq!(listed["items"][0]["name"], "TOKEN");
        let audit = dir.lango(&["audit", "--json"]).stdout;
        assert!(audit.contains("[set, hidden]"), "{audit}");
        for text in [&run.stdout, &run.stderr, &audit] {
            assert!(!text.contains(value), "{text}");
        }
        let last = server.requests().pop().unwrap();
        assert!(!String::from_utf8_lossy(&last.body).contains(value));
        assert_eq!(
            files_with(&dir.path().join("home"), value),
            Vec::<String>::new()
        );
    }
}

/// B130: a command gets the value, and nothing else does.
#[test]
fn a_command_uses_a_secret_that_appears_nowhere() {
    let command =
        r#"test ${#TOKEN} -eq 17 && echo "length ok: $TOKEN"; printf %s "user:$TOKEN" | base64"#;
    let args = json!({ "command": command, "env": { "TOKEN": "{{secret:GITHUB_TOKEN}}" } });
    let server = ModelServer::start(vec![
        ServerReply::tool_call("transfer_to_agent", &json!({ "agent_name": "operator" })),
        ServerReply::tool_call("exec_shell", &args),
        ServerReply::text("Done."),
    ])
    .unwrap();
    let dir = provider_dir(&server);
    set(&dir, "GITHUB_TOKEN", CANARY, &["--host", "api.github.com"]);
    let args = [
        "ask",
        "--json",
        "--yes",
        "--record",
        "turn.rec",
        "use my token",
    ];
    let run = dir.lango(&args);
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    let hidden = "length ok: [secret GITHUB_TOKEN: set, hidden]";
    assert!(run.stdout.contains(hidden), "{}", run.stdout);
    assert!(
        run.stdout.contains("meant for api.github.com"),
        "{}",
        run.stdout
    );
    for text in [CANARY, "Y2FuYXJ5", "canary"] {
        assert!(!run.stdout.contains(text) && !run.stderr.contains(text));
        assert_eq!(files_with(dir.path(), text), Vec::<String>::new());
        for request in server.requests() {
            assert!(!String::from_utf8_lossy(&request.body).contains(text));
        }
    }
    let listed = dir.lango(&["secret", "list", "--json"]).json();
    assert!(listed["items"][0]["used"].is_string(), "{listed}");
}

/// B130: a value that was typed in a request is in no file once it is stored.
#[test]
fn a_typed_value_is_removed_from_the_session_and_the_recording() {
    let server = ModelServer::start(vec![
        ServerReply::text(&format!("I see {CANARY}.")),
        ServerReply::tool_call("transfer_to_agent", &json!({ "agent_name": "vault" })),
        ServerReply::tool_call(
            "secrets_store",
            &json!({ "name": "TOKEN", "value": CANARY }),
        ),
        ServerReply::text("Stored."),
        ServerReply::text("Hello."),
    ])
    .unwrap();
    let dir = provider_dir(&server);
    let ask = |text: &str, options: &[&str]| {
        let run = dir.lango(&[&["ask", "--yes", "--session", "s", text], options].concat());
        assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    };
    ask(&format!("my token is {CANARY}"), &[]);
    let home = dir.path().join("home");
    assert!(!files_with(&home, CANARY).is_empty());
    let request = format!("store a secret named TOKEN with value {CANARY}");
    ask(&request, &["--record", "turn.rec"]);
    assert_eq!(files_with(dir.path(), CANARY), Vec::<String>::new());
    assert_eq!(files_with(dir.path(), "canary-7"), Vec::<String>::new());
    let shown = dir.lango(&["session", "show", "s", "--json"]).stdout;
    assert!(
        shown.contains("with value [secret TOKEN: set, hidden]"),
        "{shown}"
    );
    ask("hello again", &[]);
    let last = server.requests().pop().unwrap();
    assert!(!String::from_utf8_lossy(&last.body).contains(CANARY));
}

/// B130: a recording that lost a value can be replayed.
#[test]
fn a_recording_of_a_typed_value_can_be_replayed() {
    let server = ModelServer::start(vec![
        ServerReply::tool_call("transfer_to_agent", &json!({ "agent_name": "vault" })),
        ServerReply::tool_call(
            "secrets_store",
            &json!({ "name": "TOKEN", "value": CANARY }),
        ),
        ServerReply::text("Stored."),
    ])
    .unwrap();
    let dir = provider_dir(&server);
    let request = format!("store a secret named TOKEN with value {CANARY}");
    let run = dir.lango(&["ask", "--yes", "--record", "turn.rec", &request]);
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    let replayed = dir.lango(&["ask", "--replay", "turn.rec"]);
    assert_eq!(replayed.exit, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert!(replayed.stdout.contains("Stored."), "{}", replayed.stdout);
    assert_eq!(files_with(dir.path(), CANARY), Vec::<String>::new());
}

/// B130: the value is typed without being shown.
#[test]
fn a_value_is_typed_without_echo() {
    let dir = TestDir::new();
    let args = ["secret", "set", "GITHUB_TOKEN", "--host", "api.github.com"];
    let run = dir.lango_at_terminal(&args, CANARY);
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stderr.contains("Value of GITHUB_TOKEN (not shown):"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains(CANARY) && !run.stdout.contains(CANARY));
    let listed = dir.lango(&["secret", "list", "--json"]).json();
    assert_eq!(listed["items"][0]["hosts"], json!(["api.github.com"]));
    assert_eq!(files_with(dir.path(), CANARY), Vec::<String>::new());
}

/// B130: settings can name a secret.
#[test]
fn a_provider_key_can_be_in_the_vault() {
    let server = ModelServer::start(vec![ServerReply::text("Hello.")]).unwrap();
    let dir = provider_dir(&server);
    let args = [
        "ask",
        "--set",
        "providers.x.apiKey=vault:MODEL_KEY",
        "hello",
    ];
    let missing = dir.lango(&args);
    assert!(missing.exit == 2 && missing.stderr.contains("there is no secret `MODEL_KEY`"));
    set(&dir, "MODEL_KEY", CANARY, &[]);
    let run = dir.lango(&args);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let head = &server.requests()[0].head;
    assert!(head.contains(CANARY), "{head}");
    assert_eq!(files_with(dir.path(), CANARY), Vec::<String>::new());
}
