//! From settings to what is known: facts, what helped, and questions worth asking.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Tool;
use lango_domain::hooks::{Advisor, AfterTurn, ContextSource};
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::model::Model;
use lango_engine::TurnHooks;
use lango_knowledge::Lazy;
use lango_knowledge::inquiries::{self, Inquiries};
use lango_knowledge::knowledge_base::{
    self, KnowledgeBase, KnowledgeContext, LearningAdvisor, OutcomeTracker,
};
use lango_knowledge::secret_scan::SecretScanner;
use lango_store::SqliteStore;

use crate::assistant::known_secrets;
use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::lazy_store::LazyStore;

/// What is known and kept in this store.
pub fn open_knowledge_base(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: &SqliteStore,
) -> KnowledgeBase {
    build_knowledge_base(
        loaded,
        environment,
        Lazy::ready(Arc::new(store.clone()) as Arc<dyn KnowledgeStore>),
    )
}

/// The librarian's tools for what is known, as far as they are enabled (S83). The store is opened when one is first used.
pub(crate) fn knowledge_base_tools(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &LazyStore,
) -> Vec<Tool> {
    let settings = &loaded.settings;
    if !settings.knowledge.enabled {
        return Vec::new();
    }
    let opened = stores.clone();
    let store = Lazy::new(move || Ok(Arc::new(opened.open()?) as Arc<dyn KnowledgeStore>));
    let mut tools = knowledge_base::tools(&build_knowledge_base(loaded, environment, store));
    if settings.librarian.enabled {
        let opened = stores.clone();
        let store = Lazy::new(move || Ok(Arc::new(opened.open()?) as Arc<dyn InquiryStore>));
        tools.extend(inquiries::tools(&store, &clock()));
    }
    tools
}

/// What stands beside turns, as far as it is enabled.
pub(crate) fn knowledge_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: &SqliteStore,
    model: Option<Arc<dyn Model>>,
) -> TurnHooks {
    let settings = &loaded.settings;
    if !settings.knowledge.enabled {
        return TurnHooks::default();
    }
    let (knowing, sessions) = (
        open_knowledge_base(loaded, environment, store),
        Arc::new(store.clone()),
    );
    let mut sources: Vec<Arc<dyn ContextSource>> =
        vec![Arc::new(KnowledgeContext(knowing.clone()))];
    let outcomes = OutcomeTracker {
        knowledge_base: knowing.clone(),
        sessions: sessions.clone(),
    };
    let mut afterwards: Vec<Arc<dyn AfterTurn>> = vec![Arc::new(outcomes)];
    if settings.librarian.enabled {
        let inquiries = Arc::new(Inquiries::new(inquiries::InquiryParts {
            store: Lazy::ready(Arc::new(store.clone()) as Arc<dyn InquiryStore>),
            knowledge_base: knowing.clone(),
            memories: sessions.clone(),
            sessions,
            model,
            settings: settings.librarian.clone(),
        }));
        sources.push(inquiries.clone());
        afterwards.push(inquiries);
    }
    let advisor: Arc<dyn Advisor> = Arc::new(LearningAdvisor(knowing));
    TurnHooks {
        context_sources: sources,
        advisor: Some(advisor),
        after_turn: afterwards,
        ..TurnHooks::default()
    }
}

fn build_knowledge_base(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: Lazy<dyn KnowledgeStore>,
) -> KnowledgeBase {
    let secrecy = SecretScanner::with_known_secrets(known_secrets(loaded, environment));
    KnowledgeBase {
        store,
        secret_scanner: secrecy,
        now: clock(),
    }
}

fn clock() -> Clock {
    Arc::new(Timestamp::now)
}
