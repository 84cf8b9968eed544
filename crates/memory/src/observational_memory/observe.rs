//! Observes sessions after each turn, span by span. Once a session is long enough, observations
//! replace its older messages in requests.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::{SignedDuration, Timestamp};
use lango_domain::Label;
use lango_domain::StoreError;
use lango_domain::event::Event;
use lango_domain::hooks::AfterTurn;
use lango_domain::memory::{
    MemoryNote, MemoryOrigin, MemorySpeaker, MemoryWrite, NewMemory, ObservationProgress,
    ObservedSpan, ObserverBackoff,
};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;
use lango_text::token_estimate;

use super::model_writer::{self, MemoryWriteError, WriteTask, WrittenMemory};
use super::transcript::{Utterance, event_tokens, transcript, truncate_middle};
use super::{ObservationalMemory, Observer, rules};

/// Most spans observed after one turn; a long imported session is observed over several turns.
const MAX_SPANS: usize = 6;
/// Number of unusable answers after which rules replace the model.
const MAX_UNUSABLE: u32 = 3;
/// Upper bound of the bytes per token.
const BYTES_PER_TOKEN: usize = 8;
/// Delay after the first failure. It doubles with each further failure, up to `MAX_DELAY`.
const INITIAL_DELAY: SignedDuration = SignedDuration::from_mins(1);
const MAX_DELAY: SignedDuration = SignedDuration::from_hours(6);

impl AfterTurn for ObservationalMemory {
    fn on_turn_end(&self, key: SessionKey) -> BoxFuture<'static, ()> {
        let memory = self.clone();
        async move {
            if let Err(error) = memory.process_session(&key).await {
                tracing::warn!(%error, session = %key.session, "the session could not be observed");
            }
        }
        .boxed()
    }
}

/// The events of one span to observe.
pub(super) struct ObservationInput {
    after: u64,
    last: u64,
    tokens: usize,
    events: Vec<Arc<Event>>,
}

impl ObservationalMemory {
    /// Observes new turns of a session, activates observations in place of old messages, and condenses
    /// them if there are many.
    pub async fn process_session(&self, key: &SessionKey) -> Result<(), StoreError> {
        let lock = self.session_lock(key);
        let _guard = lock.lock().await;
        let unobserved = self.observe(key, self.min_input_tokens()).await?;
        self.activate(key, unobserved).await?;
        self.reflect_if_due(key).await
    }

    /// Returns the minimum size of a span. Rules observe every turn; a model waits until a call is
    /// worthwhile.
    fn min_input_tokens(&self) -> usize {
        match self.observer() {
            Observer::Rules => 0,
            Observer::Model { .. } => self.settings().buffer_tokens.get(),
        }
    }

    /// Observes spans of at least `min_tokens`. Returns the number of tokens that remain unobserved.
    pub(super) async fn observe(
        &self,
        key: &SessionKey,
        min_tokens: usize,
    ) -> Result<usize, StoreError> {
        let mut unobserved = 0;
        for _ in 0..MAX_SPANS {
            let progress = self.memories().progress(key).await?;
            let Some(input) = self.next_input(key, progress.observed_through).await? else {
                return Ok(0);
            };
            unobserved = input.tokens;
            if input.tokens < min_tokens || self.is_backing_off(&progress) {
                break;
            }
            match self.make_observations(key, &input, &progress).await? {
                None => break,
                Some((origin, observations)) => {
                    let span = ObservedSpan {
                        after: input.after,
                        last: input.last,
                        tokens: input.tokens,
                        origin,
                        observations,
                    };
                    // After a conflict, another observer has saved the same events.
                    let (MemoryWrite::Written | MemoryWrite::Conflict) =
                        self.memories().save_span(key, span).await?;
                    unobserved = 0;
                }
            }
        }
        Ok(unobserved)
    }

    /// Returns the next whole turns after `after`, until they have enough tokens for a span.
    async fn next_input(
        &self,
        key: &SessionKey,
        after: u64,
    ) -> Result<Option<ObservationInput>, StoreError> {
        let target_tokens = self.settings().buffer_tokens.get();
        let bytes = target_tokens.saturating_mul(BYTES_PER_TOKEN);
        let mut events = self.memories().turns_after(key, after, bytes).await?;
        let (mut tokens, mut end) = (0, events.len());
        for (at, event) in events.iter().enumerate() {
            tokens += event_tokens(event);
            if tokens >= target_tokens && event.body.is_turn_end() {
                end = at + 1;
                break;
            }
        }
        events.truncate(end);
        let last = events.last().map(|event| event.seq);
        Ok(last.map(|last| ObservationInput {
            after,
            last,
            tokens,
            events,
        }))
    }

    /// Returns true if the model failed recently and must not be called yet.
    pub(super) fn is_backing_off(&self, progress: &ObservationProgress) -> bool {
        let is_model = matches!(self.observer(), Observer::Model { .. });
        is_model
            && progress
                .backoff
                .as_ref()
                .is_some_and(|backoff| backoff.not_before > self.now())
    }

    /// Returns the observations of a span, or `None` if the model failed.
    async fn make_observations(
        &self,
        key: &SessionKey,
        input: &ObservationInput,
        progress: &ObservationProgress,
    ) -> Result<Option<(MemoryOrigin, Vec<NewMemory>)>, StoreError> {
        let ids = input
            .events
            .iter()
            .map(|event| (event.turn.clone(), event.seq))
            .collect();
        let forgotten = self
            .memories()
            .forgotten_events(&key.principal, ids)
            .await?;
        let transcript = transcript(&input.events, &forgotten);
        let unusable = progress
            .backoff
            .as_ref()
            .map_or(0, |backoff| backoff.unusable);
        let (origin, mut observations) = match self.observer() {
            Observer::Model { model, name } if unusable < MAX_UNUSABLE => {
                match self.observe_with_model(&**model, key, &transcript).await? {
                    Ok(observations) => (MemoryOrigin::Model(name.clone()), observations),
                    Err(error) => {
                        self.back_off(key, progress, &error).await?;
                        return Ok(None);
                    }
                }
            }
            Observer::Rules | Observer::Model { .. } => {
                (MemoryOrigin::Rules, rules::find_observations(&transcript))
            }
        };
        observations.retain(|new| !self.is_secret(&new.note.text));
        Ok(Some((origin, observations)))
    }

    /// Sends all requests for a span. The observations are saved together or not at all.
    async fn observe_with_model(
        &self,
        model: &dyn Model,
        key: &SessionKey,
        transcript: &[Utterance],
    ) -> Result<Result<Vec<NewMemory>, MemoryWriteError>, StoreError> {
        let mut observations = Vec::new();
        for lines in model_requests(self, model, transcript) {
            let (written, usage) =
                model_writer::write_memories(model, WriteTask::Observe, &lines).await;
            if let (Some(usage), Some(last)) = (usage, transcript.last()) {
                self.memories()
                    .record_usage(key, last.turn.clone(), usage)
                    .await?;
            }
            match written {
                Ok(written) => observations.extend(
                    written
                        .into_iter()
                        .filter_map(|line| observation(line, transcript)),
                ),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(observations))
    }

    pub(super) async fn back_off(
        &self,
        key: &SessionKey,
        progress: &ObservationProgress,
        error: &MemoryWriteError,
    ) -> Result<(), StoreError> {
        tracing::warn!(error = %error, session = %key.session, "observing failed; will retry later");
        let (failures, unusable) = progress
            .backoff
            .as_ref()
            .map_or((0, 0), |backoff| (backoff.failures, backoff.unusable));
        let is_unusable = *error == MemoryWriteError::Unusable;
        let backoff = ObserverBackoff {
            failures: failures.saturating_add(1),
            unusable: unusable + u32::from(is_unusable),
            not_before: backoff_until(self.now(), failures),
        };
        self.memories().save_backoff(key, backoff).await
    }

    /// Once the session has enough tokens, activates the observations for all but its newest messages.
    async fn activate(&self, key: &SessionKey, unobserved: usize) -> Result<(), StoreError> {
        let progress = self.memories().progress(key).await?;
        let raw = unobserved
            + progress
                .pending
                .iter()
                .map(|(_, tokens)| tokens)
                .sum::<usize>();
        if raw < self.settings().message_token_threshold.get() {
            return Ok(());
        }
        let mut newer_tokens = unobserved;
        for (last, tokens) in progress.pending.iter().rev() {
            if newer_tokens >= self.settings().recent_tokens {
                return self.memories().activate(key, *last).await;
            }
            newer_tokens += tokens;
        }
        Ok(())
    }
}

/// Splits a transcript into requests of lines with their ids.
fn model_requests(
    memory: &ObservationalMemory,
    model: &dyn Model,
    transcript: &[Utterance],
) -> Vec<Vec<(String, String)>> {
    let budget = model_writer::request_budget(model);
    let (mut requests, mut request, mut used) = (Vec::new(), Vec::new(), 0);
    for utterance in transcript
        .iter()
        .filter(|utterance| !memory.is_secret(&utterance.text))
    {
        let at = utterance.at.strftime("%Y-%m-%d %H:%M");
        let text = format!(
            "{at} {}: {}",
            utterance.speaker,
            truncate_middle(&utterance.text, budget / 2)
        );
        let tokens = token_estimate::estimate(&text) + 5;
        if used + tokens > budget && !request.is_empty() {
            requests.push(std::mem::take(&mut request));
            used = 0;
        }
        used += tokens;
        request.push((utterance.seq.to_string(), text));
    }
    requests.extend((!request.is_empty()).then_some(request));
    requests
}

/// Builds an observation from a line and the events that it cites. It counts as the user's own wording
/// only if all of them are messages of the user.
fn observation(line: WrittenMemory, transcript: &[Utterance]) -> Option<NewMemory> {
    let cited: Vec<&Utterance> = transcript
        .iter()
        .filter(|utterance| line.cites.contains(&utterance.seq.to_string()))
        .collect();
    let last = cited.last()?;
    let is_own = cited
        .iter()
        .all(|utterance| utterance.spoken_by == MemorySpeaker::User);
    let speaker = if is_own {
        MemorySpeaker::User
    } else {
        MemorySpeaker::Others
    };
    // The model has read the whole transcript, so any of it may have influenced the text, unless the
    // text quotes the user.
    let is_quoted = is_own
        && cited
            .iter()
            .any(|utterance| rules::is_quoted(&line.text, &utterance.text));
    let label = match is_quoted {
        true => Label::default(),
        false => transcript
            .iter()
            .fold(Label::default(), |label, utterance| {
                label.joined(&utterance.label)
            }),
    };
    let note = MemoryNote {
        text: line.text,
        kind: line.kind,
        priority: line.priority,
        speaker,
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
