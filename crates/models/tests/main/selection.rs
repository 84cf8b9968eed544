use std::collections::BTreeMap;

use lango_models::{
    ModelSettings, ProviderSettings, Providers, Secret, SelectionError, SelectionInput,
    select_model,
};

struct World {
    agent: ModelSettings,
    providers: Providers,
    variables: BTreeMap<&'static str, &'static str>,
    ollama: Option<&'static str>,
}

fn world() -> World {
    World {
        agent: ModelSettings::default(),
        providers: Providers::new(),
        variables: BTreeMap::new(),
        ollama: None,
    }
}

impl World {
    fn select(&self) -> Result<(String, String), SelectionError> {
        let prices = BTreeMap::new();
        let variable = |name: &str| self.variables.get(name).map(|value| (*value).to_owned());
        let ollama = || self.ollama.map(str::to_owned);
        let plan = SelectionInput {
            agent: &self.agent,
            providers: &self.providers,
            prices: &prices,
            env_var: &variable,
            ollama: &ollama,
        };
        select_model(&plan).map(|chosen| (chosen.provider, chosen.model))
    }
}

fn pair(provider: &str, model: &str) -> Result<(String, String), SelectionError> {
    Ok((provider.to_owned(), model.to_owned()))
}

#[test]
fn with_nothing_configured_keys_come_first_then_an_ollama() {
    let mut world = world();
    assert_eq!(world.select(), pair("offline", "phrases"));
    world.ollama = Some("qwen3:8b");
    assert_eq!(world.select(), pair("ollama", "qwen3:8b"));
    world.variables.insert("GOOGLE_API_KEY", "k");
    assert_eq!(world.select(), pair("gemini", "gemini-2.5-flash"));
    world.variables.insert("OPENAI_API_KEY", "k");
    assert_eq!(world.select(), pair("openai", "gpt-5-mini"));
    world.variables.insert("ANTHROPIC_API_KEY", "k");
    assert_eq!(world.select(), pair("anthropic", "claude-sonnet-4-5"));
}

#[test]
fn what_is_said_stands() {
    let mut world = world();
    world.variables.insert("ANTHROPIC_API_KEY", "k");
    world.providers.insert(
        "mine".into(),
        ProviderSettings {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            ..ProviderSettings::default()
        },
    );
    world.agent.provider = Some("mine".into());
    assert_eq!(
        world.select(),
        Err(SelectionError::UnknownKind("mine".into()))
    );
    world.providers.get_mut("mine").unwrap().r#type = Some(lango_models::ProviderKind::Openai);
    assert_eq!(
        world.select(),
        Err(SelectionError::MissingModel("mine".into()))
    );
    world.agent.model = Some("m".into());
    assert_eq!(world.select(), pair("mine", "m"));
    world.providers.get_mut("mine").unwrap().base_url = Some("ftp://x".into());
    assert_eq!(
        world.select(),
        Err(SelectionError::InvalidBaseUrl("mine".into()))
    );
    (world.agent.provider, world.agent.model) = (Some("offline".into()), None);
    assert_eq!(world.select(), pair("offline", "phrases"));
}

#[test]
fn agents_and_the_fallback_may_have_their_own() {
    let mut world = world();
    world
        .agent
        .models
        .insert("planner".into(), "anthropic/claude-opus-4-5".into());
    world
        .agent
        .models
        .insert("librarian".into(), "meta/llama".into());
    world.agent.fallback = Some("openai/gpt-5".into());
    world.variables.insert("OPENAI_API_KEY", "k");
    let prices = BTreeMap::new();
    let variable = |name: &str| world.variables.get(name).map(|value| (*value).to_owned());
    let plan = SelectionInput {
        agent: &world.agent,
        providers: &world.providers,
        prices: &prices,
        env_var: &variable,
        ollama: &|| None,
    };
    let default = select_model(&plan).unwrap();
    let planner = plan.for_agent("planner", &default).unwrap().unwrap();
    assert_eq!(
        (planner.provider.as_str(), planner.model.as_str()),
        ("anthropic", "claude-opus-4-5")
    );
    let librarian = plan.for_agent("librarian", &default).unwrap().unwrap();
    assert_eq!(
        (librarian.provider.as_str(), librarian.model.as_str()),
        ("openai", "meta/llama"),
        "no provider's name, so part of the model's"
    );
    assert!(plan.for_agent("operator", &default).is_none());
    assert_eq!(plan.fallback(&default).unwrap().unwrap().model, "gpt-5");
    assert_eq!(default.key, Some(Secret::new("k")));
}
