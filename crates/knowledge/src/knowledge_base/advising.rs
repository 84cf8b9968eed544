//! What was learned is shown where it fits, and what came of that is counted.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::knowledge::{Learning, OutcomeBatch};
use lango_domain::seams::{Advisor, AfterTurn, SessionKey, FailedCall};
use lango_domain::session::{SessionStore, StoreError};
use lango_domain::{Label, Labelled};

use super::matching::{FailureText, fit};
use super::{KnowledgeBase, KnowledgeBaseError, outcomes};
use crate::turn_transcript;

/// What can be relied on less is not shown any more.
const LEAST_CONFIDENCE: f64 = 0.45;

/// Shows one learning to whoever hits the failure that it is about.
pub struct LearningAdvisor(pub KnowledgeBase);

impl Advisor for LearningAdvisor {
    fn advice(&self, about: FailedCall) -> BoxFuture<'static, Option<Labelled>> {
        let knowing = self.0.clone();
        async move {
            let found = best(&knowing, &about).await;
            found.unwrap_or_else(|error| {
                tracing::warn!(%error, "nobody could say what helped before");
                None
            })
        }
        .boxed()
    }
}

async fn best(knowing: &KnowledgeBase, about: &FailedCall) -> Result<Option<Labelled>, KnowledgeBaseError> {
    let learnings = knowing.store.get().await?.learnings(&about.principal).await?;
    if learnings.is_empty() {
        return Ok(None);
    }
    let failure = FailureText::of(about);
    let weighed = learnings.iter().filter_map(|learning| {
        let confidence = Some(learning.confidence()).filter(|confidence| *confidence >= LEAST_CONFIDENCE)?;
        Some((f64::from(fit(&learning.trigger, &failure)?) * confidence, learning))
    });
    // Of equals the newest: it comes first.
    let best = weighed.fold(None, |best: Option<(f64, &Learning)>, (weight, learning)| match best {
        Some((most, _)) if most >= weight => best,
        _ => Some((weight, learning)),
    });
    Ok(best.map(|(_, learning)| {
        let label = Label::private("learnings").joined(&learning.source.label);
        Labelled { text: shown(learning), label }
    }))
}

/// Begins with which one it is: so that what came of it can be counted.
fn shown(learning: &Learning) -> String {
    format!("{}{}] When {}: {}", outcomes::MARK, learning.id, learning.trigger, learning.fix)
}

/// Counts, when a turn has ended, whether what was shown helped.
pub struct OutcomeTracker {
    pub knowing: KnowledgeBase,
    pub sessions: Arc<dyn SessionStore>,
}

impl AfterTurn for OutcomeTracker {
    fn turn_ended(&self, of: SessionKey) -> BoxFuture<'static, ()> {
        let (knowing, sessions) = (self.knowing.clone(), Arc::clone(&self.sessions));
        async move {
            if let Err(error) = count(&knowing, &*sessions, &of).await {
                tracing::warn!(%error, "what helped could not be counted");
            }
        }
        .boxed()
    }
}

/// Invariant: an outcome and the mark behind which it lies change together, so that each is counted once.
async fn count(knowing: &KnowledgeBase, sessions: &dyn SessionStore, of: &SessionKey) -> Result<(), StoreError> {
    let store = knowing.store.get().await?;
    let behind = store.counted(of).await?;
    let mut events = turn_transcript::load_finished_turns(sessions, of, behind).await?;
    events.retain(|event| event.seq > behind);
    let Some(last) = events.last() else { return Ok(()) };
    let (through, outcomes) = (last.seq, outcomes::outcomes_in(&events));
    store.count(of, OutcomeBatch { behind, through, outcomes }).await
}
