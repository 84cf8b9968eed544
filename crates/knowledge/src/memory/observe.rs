//! After each turn: what was said becomes observations, in pieces; when enough was said, they stand for it.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::{SignedDuration, Timestamp};
use lango_domain::event::{Event, EventBody};
use lango_domain::hooks::AfterTurn;
use lango_domain::memory::{
    MemoryNote, MemoryOrigin, MemorySpeaker, MemoryWrite, NewMemory, ObservationProgress,
    ObservedSpan, ObserverBackoff,
};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;
use lango_domain::session::StoreError;
use lango_domain::{Label, token_estimate};

use super::model_writer::{self, MemoryWriteError, WriteTask, WrittenMemory};
use super::transcript::{Utterance, event_tokens, transcript, truncate_middle};
use super::{ObservationalMemory, Observer, rules};

/// So many pieces are observed behind one turn; a long session that was brought in is observed little by little.
const MAX_SPANS: usize = 6;
/// A model that gives no usable answer so often leaves the piece to the rules.
const MAX_UNUSABLE: u32 = 3;
/// More bytes than any text has for a token.
const BYTES_PER_TOKEN: usize = 8;
/// After a failure it is tried again in a minute, then in two, and so on up to this.
const INITIAL_DELAY: SignedDuration = SignedDuration::from_mins(1);
const MAX_DELAY: SignedDuration = SignedDuration::from_hours(6);

impl AfterTurn for ObservationalMemory {
    fn on_turn_end(&self, of: SessionKey) -> BoxFuture<'static, ()> {
        let chronicle = self.clone();
        async move {
            if let Err(error) = chronicle.process_session(&of).await {
                tracing::warn!(%error, session = %of.session, "the session was not observed");
            }
        }
        .boxed()
    }
}

/// What is to be observed at one time.
pub(super) struct ObservationInput {
    after: u64,
    last: u64,
    tokens: usize,
    events: Vec<Arc<Event>>,
}

impl ObservationalMemory {
    /// Observes what is new in a session, lets observations stand for what is old, and condenses them where they are many.
    pub async fn process_session(&self, of: &SessionKey) -> Result<(), StoreError> {
        let turn = self.session_lock(of);
        let _turn = turn.lock().await;
        let unobserved = self.observe(of, self.min_input_tokens()).await?;
        self.activate(of, unobserved).await?;
        self.reflect_if_due(of).await
    }

    /// Rules look at every turn; a model at enough of them to be worth a call.
    fn min_input_tokens(&self) -> usize {
        match self.observer() {
            Observer::Rules => 0,
            Observer::Model { .. } => self.settings().buffer_tokens.get(),
        }
    }

    /// Everything that can be observed now, in portions of at least so many tokens; gives what is left.
    pub(super) async fn observe(&self, of: &SessionKey, least: usize) -> Result<usize, StoreError> {
        let mut left = 0;
        for _ in 0..MAX_SPANS {
            let progress = self.memories().progress(of).await?;
            let Some(portion) = self.next_input(of, progress.observed_through).await? else {
                return Ok(0);
            };
            left = portion.tokens;
            if portion.tokens < least || self.is_backing_off(&progress) {
                break;
            }
            match self.make_observations(of, &portion, &progress).await? {
                None => break,
                Some((origin, observations)) => {
                    let ObservationInput {
                        after: behind,
                        last,
                        tokens,
                        ..
                    } = portion;
                    let piece = ObservedSpan {
                        after: behind,
                        last,
                        tokens,
                        origin,
                        observations,
                    };
                    // Whoever was first has observed the same events: there is only the rest left to do.
                    let (MemoryWrite::Written | MemoryWrite::Conflict) =
                        self.memories().save_span(of, piece).await?;
                    left = 0;
                }
            }
        }
        Ok(left)
    }

    /// Whole turns behind what was observed, until they are enough for a portion.
    async fn next_input(
        &self,
        of: &SessionKey,
        behind: u64,
    ) -> Result<Option<ObservationInput>, StoreError> {
        let enough = self.settings().buffer_tokens.get();
        let bytes = enough.saturating_mul(BYTES_PER_TOKEN);
        let mut events = self.memories().turns_after(of, behind, bytes).await?;
        let (mut tokens, mut end) = (0, events.len());
        for (at, event) in events.iter().enumerate() {
            tokens += event_tokens(event);
            if tokens >= enough
                && matches!(
                    event.body,
                    EventBody::TurnDone | EventBody::TurnFailed { .. }
                )
            {
                end = at + 1;
                break;
            }
        }
        events.truncate(end);
        let last = events.last().map(|event| event.seq);
        Ok(last.map(|last| ObservationInput {
            after: behind,
            last,
            tokens,
            events,
        }))
    }

    /// Whether the model did not get through lately.
    pub(super) fn is_backing_off(&self, progress: &ObservationProgress) -> bool {
        let is_model = matches!(self.observer(), Observer::Model { .. });
        is_model
            && progress
                .backoff
                .as_ref()
                .is_some_and(|setback| setback.not_before > self.now())
    }

    /// What there is to remember of a portion; nothing where the model did not get through.
    async fn make_observations(
        &self,
        of: &SessionKey,
        portion: &ObservationInput,
        progress: &ObservationProgress,
    ) -> Result<Option<(MemoryOrigin, Vec<NewMemory>)>, StoreError> {
        let ids = portion
            .events
            .iter()
            .map(|event| (event.turn.clone(), event.seq))
            .collect();
        let forgotten = self.memories().forgotten_events(&of.principal, ids).await?;
        let heard = transcript(&portion.events, &forgotten);
        let unusable = progress
            .backoff
            .as_ref()
            .map_or(0, |setback| setback.unusable);
        let (origin, mut observations) = match self.observer() {
            Observer::Model { model, name } if unusable < MAX_UNUSABLE => {
                match self.observe_with_model(&**model, of, &heard).await? {
                    Ok(observations) => (MemoryOrigin::Model(name.clone()), observations),
                    Err(failure) => {
                        self.back_off(of, progress, &failure).await?;
                        return Ok(None);
                    }
                }
            }
            Observer::Rules | Observer::Model { .. } => {
                (MemoryOrigin::Rules, rules::find_observations(&heard))
            }
        };
        observations.retain(|new| !self.is_secret(&new.note.text));
        Ok(Some((origin, observations)))
    }

    /// All requests that a portion needs: what is kept is kept together.
    async fn observe_with_model(
        &self,
        model: &dyn Model,
        of: &SessionKey,
        heard: &[Utterance],
    ) -> Result<Result<Vec<NewMemory>, MemoryWriteError>, StoreError> {
        let mut observations = Vec::new();
        for lines in model_requests(self, model, heard) {
            let (written, usage) =
                model_writer::write_memories(model, WriteTask::Observe, &lines).await;
            if let (Some(usage), Some(last)) = (usage, heard.last()) {
                self.memories()
                    .record_usage(of, last.turn.clone(), usage)
                    .await?;
            }
            match written {
                Ok(written) => observations.extend(
                    written
                        .into_iter()
                        .filter_map(|line| observation(line, heard)),
                ),
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(observations))
    }

    pub(super) async fn back_off(
        &self,
        of: &SessionKey,
        progress: &ObservationProgress,
        failure: &MemoryWriteError,
    ) -> Result<(), StoreError> {
        tracing::warn!(%failure, session = %of.session, "observing is tried again later");
        let (failures, unusable) = progress
            .backoff
            .as_ref()
            .map_or((0, 0), |setback| (setback.failures, setback.unusable));
        let is_unusable = *failure == MemoryWriteError::Unusable;
        let setback = ObserverBackoff {
            failures: failures.saturating_add(1),
            unusable: unusable + u32::from(is_unusable),
            not_before: backoff_until(self.now(), failures),
        };
        self.memories().save_backoff(of, setback).await
    }

    /// When enough is said, observations stand for it up to where the newest words begin.
    async fn activate(&self, of: &SessionKey, unobserved: usize) -> Result<(), StoreError> {
        let progress = self.memories().progress(of).await?;
        let raw = unobserved
            + progress
                .pending
                .iter()
                .map(|(_, tokens)| tokens)
                .sum::<usize>();
        if raw < self.settings().message_token_threshold.get() {
            return Ok(());
        }
        let mut behind = unobserved;
        for (last, tokens) in progress.pending.iter().rev() {
            if behind >= self.settings().recent_tokens {
                return self.memories().activate(of, *last).await;
            }
            behind += tokens;
        }
        Ok(())
    }
}

/// What was heard as lines with marks, in as many requests as it takes.
fn model_requests(
    chronicle: &ObservationalMemory,
    model: &dyn Model,
    heard: &[Utterance],
) -> Vec<Vec<(String, String)>> {
    let room = model_writer::request_budget(model);
    let (mut requests, mut request, mut used) = (Vec::new(), Vec::new(), 0);
    for utterance in heard
        .iter()
        .filter(|utterance| !chronicle.is_secret(&utterance.text))
    {
        let at = utterance.at.strftime("%Y-%m-%d %H:%M");
        let text = format!(
            "{at} {}: {}",
            utterance.speaker,
            truncate_middle(&utterance.text, room / 2)
        );
        let tokens = token_estimate::estimate(&text) + 5;
        if used + tokens > room && !request.is_empty() {
            requests.push(std::mem::take(&mut request));
            used = 0;
        }
        used += tokens;
        request.push((utterance.seq.to_string(), text));
    }
    requests.extend((!request.is_empty()).then_some(request));
    requests
}

/// A written line with the events that it cites; the user's own words only if it cites nothing else.
fn observation(line: WrittenMemory, heard: &[Utterance]) -> Option<NewMemory> {
    let cited: Vec<&Utterance> = heard
        .iter()
        .filter(|utterance| line.cites.contains(&utterance.seq.to_string()))
        .collect();
    let last = cited.last()?;
    let is_own = cited
        .iter()
        .all(|utterance| utterance.spoken_by == MemorySpeaker::User);
    let words = if is_own {
        MemorySpeaker::User
    } else {
        MemorySpeaker::Others
    };
    // The model read everything that was heard, and any of it may have chosen these words; not where they are the user's.
    let is_quoted = is_own
        && cited
            .iter()
            .any(|utterance| rules::is_quoted(&line.text, &utterance.text));
    let label = match is_quoted {
        true => Label::default(),
        false => heard.iter().fold(Label::default(), |label, utterance| {
            label.joined(&utterance.label)
        }),
    };
    let note = MemoryNote {
        text: line.text,
        kind: line.kind,
        priority: line.priority,
        speaker: words,
        label,
        at: last.at,
    };
    let sources = cited.iter().map(|utterance| utterance.seq).collect();
    Some(NewMemory {
        note,
        turn: last.turn.clone(),
        sources,
    })
}

fn backoff_until(now: Timestamp, failures: u32) -> Timestamp {
    let delay =
        INITIAL_DELAY.saturating_mul(1_i32.checked_shl(failures.min(20)).unwrap_or(i32::MAX));
    now.saturating_add(delay.min(MAX_DELAY)).unwrap_or(now)
}
