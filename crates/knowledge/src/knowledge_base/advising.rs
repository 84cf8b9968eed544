//! What was learned is shown where it fits, and what came of that is counted.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::hooks::{Advisor, AfterTurn, FailedCall};
use lango_domain::knowledge::{Learning, OutcomeBatch};
use lango_domain::session::SessionKey;
use lango_domain::session::{SessionStore, StoreError};
use lango_domain::{Label, LabeledText};

use super::matching::{FailureText, match_score};
use super::{KnowledgeBase, KnowledgeBaseError, outcomes};
use crate::turn_transcript;

/// What can be relied on less is not shown any more.
const MIN_CONFIDENCE: f64 = 0.45;

/// Shows one learning to whoever hits the failure that it is about.
pub struct LearningAdvisor(pub KnowledgeBase);

impl Advisor for LearningAdvisor {
    fn advice(&self, about: FailedCall) -> BoxFuture<'static, Option<LabeledText>> {
        let knowing = self.0.clone();
        async move {
            let found = best_advice(&knowing, &about).await;
            found.unwrap_or_else(|error| {
                tracing::warn!(%error, "nobody could say what helped before");
                None
            })
        }
        .boxed()
    }
}

async fn best_advice(
    knowing: &KnowledgeBase,
    about: &FailedCall,
) -> Result<Option<LabeledText>, KnowledgeBaseError> {
    let learnings = knowing
        .store
        .get()
        .await?
        .learnings(&about.principal)
        .await?;
    if learnings.is_empty() {
        return Ok(None);
    }
    let failure = FailureText::from_call(about);
    let weighed = learnings.iter().filter_map(|learning| {
        let confidence =
            Some(learning.confidence()).filter(|confidence| *confidence >= MIN_CONFIDENCE)?;
        Some((
            f64::from(match_score(&learning.trigger, &failure)?) * confidence,
            learning,
        ))
    });
    // Of equals the newest: it comes first.
    let best = weighed.fold(
        None,
        |best: Option<(f64, &Learning)>, (weight, learning)| match best {
            Some((most, _)) if most >= weight => best,
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

/// Begins with which one it is: so that what came of it can be counted.
fn advice_text(learning: &Learning) -> String {
    format!(
        "{}{}] When {}: {}",
        outcomes::ADVICE_PREFIX,
        learning.id,
        learning.trigger,
        learning.fix
    )
}

/// Counts, when a turn has ended, whether what was shown helped.
pub struct OutcomeTracker {
    pub knowledge_base: KnowledgeBase,
    pub sessions: Arc<dyn SessionStore>,
}

impl AfterTurn for OutcomeTracker {
    fn on_turn_end(&self, of: SessionKey) -> BoxFuture<'static, ()> {
        let (knowing, sessions) = (self.knowledge_base.clone(), Arc::clone(&self.sessions));
        async move {
            if let Err(error) = count_outcomes(&knowing, &*sessions, &of).await {
                tracing::warn!(%error, "what helped could not be counted");
            }
        }
        .boxed()
    }
}

/// Invariant: an outcome and the mark behind which it lies change together, so that each is counted once.
async fn count_outcomes(
    knowing: &KnowledgeBase,
    sessions: &dyn SessionStore,
    of: &SessionKey,
) -> Result<(), StoreError> {
    let store = knowing.store.get().await?;
    let behind = store.counted_through(of).await?;
    let mut events = turn_transcript::load_finished_turns(sessions, of, behind).await?;
    events.retain(|event| event.seq > behind);
    let Some(last) = events.last() else {
        return Ok(());
    };
    let (through, outcomes) = (last.seq, outcomes::outcomes_in(&events));
    store
        .record_outcomes(
            of,
            OutcomeBatch {
                after: behind,
                through,
                outcomes,
            },
        )
        .await
}
