use std::collections::BTreeMap;

use lango_models::{
    ModelSettings, ProviderSettings, Providers, Secret, SelectionError, SelectionInput,
    select_model,
};

struct TestInput {
    agent: ModelSettings,
    providers: Providers,
    variables: BTreeMap<&'static str, &'static str>,
    ollama: Option<&'static str>,
}

fn input() -> TestInput {
    TestInput {
        agent: ModelSettings::default(),
        providers: Providers::new(),
        variables: BTreeMap::new(),
        ollama: None,
    }
}

impl TestInput {
    fn select(&self) -> Result<(String, String), SelectionError> {
        let prices = BTreeMap::new();
        let env_var = |name: &str| self.variables.get(name).map(|value| (*value).to_owned());
        let ollama = || self.ollama.map(str::to_owned);
        let selection = SelectionInput {
            agent: &self.agent,
            providers: &self.providers,
            prices: &prices,
            env_var: &env_var,
            ollama: &ollama,
        };
        select_model(&selection).map(|selected| (selected.provider, selected.model))
    }
}

fn pair(provider: &str, model: &str) -> Result<(String, String), SelectionError> {
    Ok((provider.to_owned(), model.to_owned()))
}

#[test]
fn detects_keys_first_then_ollama_then_offline() {
    let mut input = input();
    assert_eq!(input.select(), pair("offline", "phrases"));
    input.ollama = Some("qwen3:8b");
    assert_eq!(input.select(), pair("ollama", "qwen3:8b"));
    input.variables.insert("GOOGLE_API_KEY", "k");
    assert_eq!(input.select(), pair("gemini", "gemini-2.5-flash"));
    input.variables.insert("OPENAI_API_KEY", "k");
    assert_eq!(input.select(), pair("openai", "gpt-5-mini"));
    input.variables.insert("ANTHROPIC_API_KEY", "k");
    assert_eq!(input.select(), pair("anthropic", "claude-sonnet-4-5"));
}

#[test]
fn configured_provider_takes_precedence() {
    let mut input = input();
    input.variables.insert("ANTHROPIC_API_KEY", "k");
    input.providers.insert(
        "mine".into(),
        ProviderSettings {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            ..ProviderSettings::default()
        },
    );
    input.agent.provider = Some("mine".into());
    assert_eq!(
        input.select(),
        Err(SelectionError::UnknownKind("mine".into()))
    );
    input.providers.get_mut("mine").unwrap().r#type = Some(lango_models::ProviderKind::Openai);
    assert_eq!(
        input.select(),
        Err(SelectionError::MissingModel("mine".into()))
    );
    input.agent.model = Some("m".into());
    assert_eq!(input.select(), pair("mine", "m"));
    input.providers.get_mut("mine").unwrap().base_url = Some("ftp://x".into());
    assert_eq!(
        input.select(),
        Err(SelectionError::InvalidBaseUrl("mine".into()))
    );
    (input.agent.provider, input.agent.model) = (Some("offline".into()), None);
    assert_eq!(input.select(), pair("offline", "phrases"));
}

#[test]
fn agents_and_fallback_may_use_other_models() {
    let mut input = input();
    input
        .agent
        .models
        .insert("planner".into(), "anthropic/claude-opus-4-5".into());
    input
        .agent
        .models
        .insert("librarian".into(), "meta/llama".into());
    input.agent.fallback = Some("openai/gpt-5".into());
    input.variables.insert("OPENAI_API_KEY", "k");
    let prices = BTreeMap::new();
    let env_var = |name: &str| input.variables.get(name).map(|value| (*value).to_owned());
    let selection = SelectionInput {
        agent: &input.agent,
        providers: &input.providers,
        prices: &prices,
        env_var: &env_var,
        ollama: &|| None,
    };
    let default = select_model(&selection).unwrap();
    let planner = selection.for_agent("planner", &default).unwrap().unwrap();
    assert_eq!(
        (planner.provider.as_str(), planner.model.as_str()),
        ("anthropic", "claude-opus-4-5")
    );
    let librarian = selection.for_agent("librarian", &default).unwrap().unwrap();
    assert_eq!(
        (librarian.provider.as_str(), librarian.model.as_str()),
        ("openai", "meta/llama"),
        "not a provider, so part of the model name"
    );
    assert!(selection.for_agent("operator", &default).is_none());
    assert_eq!(
        selection.fallback(&default).unwrap().unwrap().model,
        "gpt-5"
    );
    assert_eq!(default.key, Some(Secret::new("k")));
}
