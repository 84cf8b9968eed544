//! The input of a scan: the new turns of a session, and what a scan may search for.

use std::collections::HashSet;

use jiff::{Timestamp, ToSpan};
use lango_domain::StoreError;
use lango_domain::inquiries::{Finder, Inquiry, LastOffer, ScanPosition, ScanProgress};
use lango_domain::session::SessionKey;

use crate::inquiries::offer::count_shared_words;
use crate::inquiries::{Inquiries, LibrarianSettings, answer_rules};
use crate::request_detection::is_forget_request;
use crate::turn_transcript::{self, TurnTranscript};
use lango_text::analyze;

/// Most new inquiries from one scan.
const MAX_RESULTS: usize = 2;
/// Number of turns after an offer for which the model checks for an answer.
const MAX_TURNS_TO_ANSWER: usize = 2;

/// The input of a scan.
pub(super) struct ScanInput {
    pub key: SessionKey,
    /// Turns without forgotten ones and without requests to forget.
    pub turns: Vec<TurnTranscript>,
    /// The last event of the scanned turns.
    pub last_seq: u64,
    pub pending: Vec<Inquiry>,
    pub position: ScanPosition,
    pub now: Timestamp,
    /// Most gaps to find; 0 during the cooldown or while enough inquiries are pending.
    pub max_gaps: usize,
}

impl Inquiries {
    /// Returns `None` if every finished turn was scanned already.
    pub(super) async fn load_scan_input(
        &self,
        key: &SessionKey,
    ) -> Result<Option<ScanInput>, StoreError> {
        let store = self.parts.store.get().await?;
        let ScanProgress {
            position,
            last_model_call,
        } = store.progress(key).await?;
        let after = position.answers.min(position.gaps);
        let sessions = &*self.parts.sessions;
        let events = turn_transcript::load_finished_turns(sessions, key, after).await?;
        let turns = turn_transcript::turn_transcripts(&events);
        let Some(newest) = turns
            .last()
            .map(|newest| newest.through)
            .filter(|newest| *newest > after)
        else {
            return Ok(None);
        };
        let turns = self.drop_forgotten(key, turns).await?;
        let pending = store.pending(&key.principal).await?;
        let now = (self.parts.knowledge_base.now)();
        let settings = &self.parts.settings;
        let remaining =
            (settings.max_pending_inquiries.get() as usize).saturating_sub(pending.len());
        let cooldown = ScanCooldown {
            by: self.finder(),
            last_model_call,
            now,
        };
        let max_gaps = if is_due(settings, &turns, position, cooldown) {
            remaining.min(MAX_RESULTS)
        } else {
            0
        };
        Ok(Some(ScanInput {
            key: key.clone(),
            turns,
            last_seq: newest,
            pending,
            position,
            now,
            max_gaps,
        }))
    }

    async fn drop_forgotten(
        &self,
        key: &SessionKey,
        turns: Vec<TurnTranscript>,
    ) -> Result<Vec<TurnTranscript>, StoreError> {
        let requests = turns
            .iter()
            .map(|turn| (turn.turn.clone(), turn.seq))
            .collect();
        let forgotten = self
            .parts
            .memories
            .forgotten_events(&key.principal, requests)
            .await?;
        let is_readable = |turn: &TurnTranscript| {
            !forgotten.contains(&turn.seq)
                && !answer_rules::sentences(&turn.request).any(is_forget_request)
        };
        Ok(turns.into_iter().filter(is_readable).collect())
    }

    fn finder(&self) -> Finder {
        if self.parts.model.is_some() {
            Finder::Model
        } else {
            Finder::Rule
        }
    }
}

impl ScanInput {
    /// Returns the position from which turns are unread for answers or for gaps.
    pub fn oldest_position(&self) -> u64 {
        self.position.answers.min(self.position.gaps)
    }

    /// Returns the turns after a position, each with the turn before it.
    pub fn unread_turns(
        &self,
        after: u64,
    ) -> impl Iterator<Item = (Option<&TurnTranscript>, &TurnTranscript)> {
        let previous = std::iter::once(None).chain(self.turns.iter().map(Some));
        previous
            .zip(&self.turns)
            .filter(move |(_, turn)| turn.through > after)
    }

    /// Returns the position after a complete scan. The position for gaps advances only if gaps were
    /// searched for.
    pub fn position_after(&self) -> ScanPosition {
        let newest = self.last_seq;
        ScanPosition {
            answers: newest,
            gaps: if self.max_gaps > 0 {
                newest
            } else {
                self.position.gaps
            },
        }
    }

    /// Returns true if a message states something about the topic.
    pub fn is_topic_stated(&self, topic: &str) -> bool {
        self.unread_turns(self.position.gaps)
            .any(|(_, turn)| answer_rules::is_stated(&turn.request, topic))
    }

    /// Returns the inquiries that were just offered in this session or whose topic is mentioned. The
    /// model checks only these for answers.
    pub fn possibly_answered(&self) -> Vec<&Inquiry> {
        let terms: HashSet<String> = self
            .unread_turns(self.position.answers)
            .flat_map(|(_, turn)| analyze(&turn.request))
            .collect();
        let was_just_asked = |inquiry: &Inquiry| {
            let is_this_session =
                |offered: &&LastOffer| offered.session.as_ref() == Some(&self.key.session);
            let asked = inquiry
                .offered
                .as_ref()
                .filter(is_this_session)
                .map(|offered| offered.at);
            asked.is_some_and(|asked| {
                self.turns.iter().filter(|turn| turn.at > asked).count() <= MAX_TURNS_TO_ANSWER
            })
        };
        let is_mentioned = |inquiry: &Inquiry| count_shared_words(&inquiry.topic, &terms) > 0;
        self.pending
            .iter()
            .filter(|inquiry| was_just_asked(inquiry) || is_mentioned(inquiry))
            .collect()
    }
}

/// The finder, and the time of the last model call.
struct ScanCooldown {
    by: Finder,
    last_model_call: Option<Timestamp>,
    now: Timestamp,
}

/// Returns true if a search for gaps is due: after enough turns and, for a model, after enough time.
/// Rules are free, so they also check the first turn of a session; a model is not called for single
/// requests.
fn is_due(
    settings: &LibrarianSettings,
    turns: &[TurnTranscript],
    position: ScanPosition,
    cooldown: ScanCooldown,
) -> bool {
    let unread = turns
        .iter()
        .filter(|turn| turn.through > position.gaps)
        .count();
    let has_failed = turns.last().is_some_and(|newest| newest.answer.is_none());
    let has_turns = unread >= settings.inquiry_cooldown_turns.get() as usize;
    let limit = cooldown
        .now
        .checked_sub(i64::from(settings.inquiry_cooldown_minutes).minutes());
    let is_cooled_down = cooldown
        .last_model_call
        .is_none_or(|asked| limit.is_ok_and(|limit| asked <= limit));
    let is_time = match cooldown.by {
        Finder::Rule => position.gaps == 0 || has_turns,
        Finder::Model => has_turns && is_cooled_down,
    };
    !has_failed && unread > 0 && is_time
}
