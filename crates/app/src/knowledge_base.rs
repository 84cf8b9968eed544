//! Opens the knowledge base, with its tools and hooks.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::Tool;
use lango_domain::hooks::{Advisor, AfterTurn, ContextSource};
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::lazy::Lazy;
use lango_domain::model::Model;
use lango_engine::TurnHooks;
use lango_memory::inquiries::{self, Inquiries};
use lango_memory::knowledge_base::{
    self, KnowledgeBase, KnowledgeContext, LearningAdvisor, OutcomeTracker,
};
use lango_text::secret_scan::SecretScanner;

use crate::assistant::known_secrets;
use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;

/// Opens the knowledge base in this store.
pub fn open_knowledge_base(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &Stores,
) -> KnowledgeBase {
    build_knowledge_base(
        loaded,
        environment,
        Lazy::ready(Arc::clone(&stores.knowledge)),
    )
}

/// Returns the librarian's tools for the knowledge base and inquiries that are enabled (S83). The
/// store is opened on first use.
pub(crate) fn knowledge_base_tools(
    context: &CapabilityContext<'_>,
) -> Result<Vec<Tool>, ConfigError> {
    let settings = &context.loaded.settings;
    if !settings.knowledge.enabled {
        return Ok(Vec::new());
    }
    let opened = context.stores.clone();
    let store = Lazy::new(move || Ok(opened.open()?.knowledge));
    let knowledge_base = build_knowledge_base(context.loaded, context.environment, store);
    let mut tools = knowledge_base::tools(&knowledge_base);
    if settings.librarian.enabled {
        let opened = context.stores.clone();
        let store = Lazy::new(move || Ok(opened.open()?.inquiries));
        tools.extend(inquiries::tools(&store, &clock()));
    }
    Ok(tools)
}

/// Returns the turn hooks of the knowledge base and inquiries that are enabled.
pub(crate) fn knowledge_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &Stores,
    model: Option<Arc<dyn Model>>,
) -> TurnHooks {
    let settings = &loaded.settings;
    if !settings.knowledge.enabled {
        return TurnHooks::default();
    }
    let knowledge_base = open_knowledge_base(loaded, environment, stores);
    let mut context_sources: Vec<Arc<dyn ContextSource>> =
        vec![Arc::new(KnowledgeContext(knowledge_base.clone()))];
    let outcomes = OutcomeTracker {
        knowledge_base: knowledge_base.clone(),
        sessions: Arc::clone(&stores.sessions),
    };
    let mut after_turn: Vec<Arc<dyn AfterTurn>> = vec![Arc::new(outcomes)];
    if settings.librarian.enabled {
        let inquiries = Arc::new(Inquiries::new(inquiries::InquiryParts {
            store: Lazy::ready(Arc::clone(&stores.inquiries)),
            knowledge_base: knowledge_base.clone(),
            memories: Arc::clone(&stores.memory),
            sessions: Arc::clone(&stores.sessions),
            model,
            settings: settings.librarian.clone(),
        }));
        context_sources.push(inquiries.clone());
        after_turn.push(inquiries);
    }
    let advisor: Arc<dyn Advisor> = Arc::new(LearningAdvisor(knowledge_base));
    TurnHooks {
        context_sources,
        advisor: Some(advisor),
        after_turn,
        ..TurnHooks::default()
    }
}

fn build_knowledge_base(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: Lazy<dyn KnowledgeStore>,
) -> KnowledgeBase {
    let secret_scanner = SecretScanner::with_known_secrets(known_secrets(loaded, environment));
    KnowledgeBase {
        store,
        secret_scanner,
        now: clock(),
    }
}

fn clock() -> Clock {
    Arc::new(Timestamp::now)
}
