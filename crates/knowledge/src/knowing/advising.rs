//! What was learned is shown where it fits, and what came of that is counted.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::knowledge::{Learning, OutcomeBatch};
use lango_domain::seams::{Advisor, AfterTurn, SessionKey, FailedCall};
use lango_domain::session::{SessionStore, StoreError};
use lango_domain::{Label, Labelled};

use super::matching::{Failure, fit};
use super::{Knowing, KnowingError, outcomes};
use crate::turns;

/// What can be relied on less is not shown any more.
const LEAST_CONFIDENCE: f64 = 0.45;

/// Shows one learning to whoever hits the failure that it is about.
pub struct Advice(pub Knowing);

impl Advisor for Advice {
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

async fn best(knowing: &Knowing, about: &FailedCall) -> Result<Option<Labelled>, KnowingError> {
    let learnings = knowing.store.get().await?.learnings(&about.principal).await?;
    if learnings.is_empty() {
        return Ok(None);
    }
    let failure = Failure::of(about);
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
pub struct Outcomes {
    pub knowing: Knowing,
    pub sessions: Arc<dyn SessionStore>,
}

impl AfterTurn for Outcomes {
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
async fn count(knowing: &Knowing, sessions: &dyn SessionStore, of: &SessionKey) -> Result<(), StoreError> {
    let store = knowing.store.get().await?;
    let behind = store.counted(of).await?;
    let mut events = turns::ended(sessions, of, behind).await?;
    events.retain(|event| event.seq > behind);
    let Some(last) = events.last() else { return Ok(()) };
    let (through, outcomes) = (last.seq, outcomes::of(&events));
    store.count(of, OutcomeBatch { behind, through, outcomes }).await
}
