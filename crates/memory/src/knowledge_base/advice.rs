//! Shows a learning when a matching call fails, and records if it helped.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::StoreError;
use lango_domain::hooks::{Advisor, AfterTurn, FailedCall};
use lango_domain::knowledge::{Learning, OutcomeBatch};
use lango_domain::session::SessionKey;
use lango_domain::session::SessionStore;
use lango_domain::{Label, LabeledText};

use super::matching::{FailureText, match_score};
use super::{KnowledgeBase, KnowledgeBaseError, outcomes};
use crate::turn_transcript;

/// Learnings with a lower confidence are not shown.
const MIN_CONFIDENCE: f64 = 0.45;

/// Adds the best matching learning to the error of a failed call.
pub struct LearningAdvisor(pub KnowledgeBase);

impl Advisor for LearningAdvisor {
    fn advice(&self, call: FailedCall) -> BoxFuture<'static, Option<LabeledText>> {
        let knowledge_base = self.0.clone();
        async move {
            let advice = best_advice(&knowledge_base, &call).await;
            advice.unwrap_or_else(|error| {
                tracing::warn!(%error, "learnings could not be loaded");
                None
            })
        }
        .boxed()
    }
}

async fn best_advice(
    knowledge_base: &KnowledgeBase,
    call: &FailedCall,
) -> Result<Option<LabeledText>, KnowledgeBaseError> {
    let learnings = knowledge_base
        .store
        .get()
        .await?
        .learnings(&call.principal)
        .await?;
    if learnings.is_empty() {
        return Ok(None);
    }
    let failure = FailureText::from_call(call);
    let weighted = learnings.iter().filter_map(|learning| {
        let confidence =
            Some(learning.confidence()).filter(|confidence| *confidence >= MIN_CONFIDENCE)?;
        Some((
            f64::from(match_score(&learning.trigger, &failure)?) * confidence,
            learning,
        ))
    });
    // Learnings are ordered newest first, so the newest wins a tie.
    let best = weighted.fold(
        None,
        |best: Option<(f64, &Learning)>, (weight, learning)| match best {
            Some((best_weight, _)) if best_weight >= weight => best,
            _ => Some((weight, learning)),
        },
    );
    Ok(best.map(|(_, learning)| {
        let label = Label::private("learnings").joined(&learning.source.label);
        LabeledText {
            text: advice_text(learning),
            label,
        }
    }))
}

/// Formats the advice. It begins with the learning's id, from which the outcome is attributed later.
fn advice_text(learning: &Learning) -> String {
    format!(
        "{}{}] When {}: {}",
        outcomes::ADVICE_PREFIX,
        learning.id,
        learning.trigger,
        learning.fix
    )
}

/// Records after each turn if the learnings shown in it helped.
pub struct OutcomeTracker {
    pub knowledge_base: KnowledgeBase,
    pub sessions: Arc<dyn SessionStore>,
}

impl AfterTurn for OutcomeTracker {
    fn on_turn_end(&self, key: SessionKey) -> BoxFuture<'static, ()> {
        let (knowledge_base, sessions) = (self.knowledge_base.clone(), Arc::clone(&self.sessions));
        async move {
            if let Err(error) = count_outcomes(&knowledge_base, &*sessions, &key).await {
                tracing::warn!(%error, "the outcomes of learnings could not be recorded");
            }
        }
        .boxed()
    }
}

/// Invariant: outcomes and the position they were counted through are saved together, so that each
/// outcome is counted once.
async fn count_outcomes(
    knowledge_base: &KnowledgeBase,
    sessions: &dyn SessionStore,
    key: &SessionKey,
) -> Result<(), StoreError> {
    let store = knowledge_base.store.get().await?;
    let after = store.counted_through(key).await?;
    let mut events = turn_transcript::load_finished_turns(sessions, key, after).await?;
    events.retain(|event| event.seq > after);
    let Some(last) = events.last() else {
        return Ok(());
    };
    let (through, outcomes) = (last.seq, outcomes::outcomes_in(&events));
    let batch = OutcomeBatch {
        after,
        through,
        outcomes,
    };
    store.record_outcomes(key, batch).await
}
