//! A look at a conversation after a turn: who was answered, and what is worth asking. Off the turn's path.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::Label;
use lango_domain::inquiries::{
    Finder, Inquiry, ExpiryRule, ScanPosition, NewInquiry, LastOffer, ScanProgress, Resolution, ScanResult,
};
use lango_domain::knowledge::{NewKnowledgeEntry, Provenance};
use lango_domain::model::Model;
use lango_domain::seams::{AfterTurn, SessionKey};
use lango_domain::session::StoreError;

use super::model_review::{self, ReviewOutput, ReviewInput, ReviewAnswer};
use super::gap_rules::{self, Gap, KnownTopics};
use super::offer::{HOURS_BETWEEN, MOST_OFFERS, shared_words};
use super::{Inquiries, LibrarianSettings, answer_rules};
use crate::knowledge_base::entry_line;
use crate::lexical::analyze;
use crate::requests::asks_to_forget;
use crate::turn_transcript::{self, TurnTranscript};

/// So many new inquiries come of one look.
const MOST_FOUND: usize = 2;
/// So many turns behind the question a model is asked whether it was answered.
const MOST_TURNS_TO_ANSWER: usize = 2;
/// A model is told so much of what is known.
const MOST_KNOWN: usize = 20;

impl AfterTurn for Inquiries {
    fn turn_ended(&self, of: SessionKey) -> BoxFuture<'static, ()> {
        let inquiries = self.clone();
        async move {
            if let Err(error) = inquiries.look(&of).await {
                tracing::warn!(%error, "the conversation could not be searched for what is worth asking");
            }
        }
        .boxed()
    }
}

/// What a look begins with.
struct ScanInput {
    of: SessionKey,
    /// Without what was forgotten, and without asking to forget.
    talk: Vec<TurnTranscript>,
    /// The last event that was looked at.
    newest: u64,
    pending: Vec<Inquiry>,
    marks: ScanPosition,
    now: Timestamp,
    /// How many gaps may be found; none while it is too early, or enough is pending.
    wanted: usize,
}

/// What a look gave.
struct ScanFindings {
    by: Finder,
    through: ScanPosition,
    resolutions: Vec<Resolution>,
    gaps: Vec<Gap>,
}

impl Inquiries {
    async fn look(&self, of: &SessionKey) -> Result<(), StoreError> {
        let _alone = self.looking.lock().await;
        let Some(scene) = self.scene(of).await? else { return Ok(()) };
        let findings = match &self.means.model {
            Some(model) => self.ask(model, &scene).await?,
            None => Some(self.by_rule(&scene).await?),
        };
        let Some(findings) = findings else { return Ok(()) };
        let settled = self.settled(&scene, findings);
        self.means.store.get().await?.settle(of, settled).await
    }

    /// Nothing when every turn that ended was looked at.
    async fn scene(&self, of: &SessionKey) -> Result<Option<ScanInput>, StoreError> {
        let store = self.means.store.get().await?;
        let ScanProgress { marks, asked } = store.progress(of).await?;
        let behind = marks.answers.min(marks.gaps);
        let talk = turn_transcript::turn_transcripts(&turn_transcript::load_finished_turns(&*self.means.sessions, of, behind).await?);
        let Some(newest) = talk.last().map(|newest| newest.through).filter(|newest| *newest > behind) else {
            return Ok(None);
        };
        let talk = self.tellable(of, talk).await?;
        let pending = store.pending(&of.principal).await?;
        let now = (self.means.knowing.now)();
        let settings = &self.means.settings;
        let room = (settings.max_pending_inquiries.get() as usize).saturating_sub(pending.len());
        let rest = ScanCooldown { by: self.finder(), asked, now };
        let wanted = if is_due(settings, &talk, marks, rest) { room.min(MOST_FOUND) } else { 0 };
        Ok(Some(ScanInput { of: of.clone(), talk, newest, pending, marks, now, wanted }))
    }

    async fn tellable(&self, of: &SessionKey, talk: Vec<TurnTranscript>) -> Result<Vec<TurnTranscript>, StoreError> {
        let requests = talk.iter().map(|exchange| (exchange.turn.clone(), exchange.seq)).collect();
        let forgotten = self.means.memories.forgotten(&of.principal, requests).await?;
        let may_be_read = |exchange: &TurnTranscript| {
            !forgotten.contains(&exchange.seq) && !answer_rules::sentences(&exchange.said).any(asks_to_forget)
        };
        Ok(talk.into_iter().filter(may_be_read).collect())
    }

    fn finder(&self) -> Finder {
        if self.means.model.is_some() { Finder::Model } else { Finder::Rule }
    }

    async fn by_rule(&self, scene: &ScanInput) -> Result<ScanFindings, StoreError> {
        let mut resolutions = Vec::new();
        for inquiry in &scene.pending {
            let answered = scene.unread(scene.marks.answers).find_map(|(before, exchange)| {
                let before = before.and_then(|before| before.answered.as_deref());
                answer_rules::find(inquiry, &exchange.said, before).map(|said| (said, exchange))
            });
            resolutions.extend(answered.map(|(said, exchange)| {
                let told = ReviewAnswer {
                    inquiry: inquiry.id,
                    answer: said.answer,
                    key: inquiry.topic.clone(),
                    category: answer_rules::category(&inquiry.topic),
                    content: said.content,
                };
                self.resolution(scene, told, exchange, exchange.said_label.clone())
            }));
        }
        let mut gaps = Vec::new();
        if scene.wanted > 0 {
            let entries = self.means.knowing.store.get().await?.entries(&scene.of.principal).await?;
            let known = KnownTopics::find_gaps(&entries);
            gaps.extend(scene.unread(scene.marks.gaps).flat_map(|(_, exchange)| gap_rules::of(exchange, &known)));
            // What was answered in the very same words is no gap.
            gaps.retain(|gap| !scene.is_said(&gap.topic));
        }
        Ok(ScanFindings { by: Finder::Rule, through: scene.through(), resolutions, gaps })
    }

    /// Nothing when nobody can be asked now; what is new waits for the next look.
    async fn ask(&self, model: &Arc<dyn Model>, scene: &ScanInput) -> Result<Option<ScanFindings>, StoreError> {
        let newest = scene.talk.last().filter(|newest| newest.answered.is_some());
        let Some(newest) = newest else { return Ok(None) };
        let open = scene.maybe_answered();
        let has_news = scene.unread(scene.marks.answers.min(scene.marks.gaps)).next().is_some();
        if !has_news || (open.is_empty() && scene.wanted == 0) {
            let through = ScanPosition { answers: scene.newest, ..scene.marks };
            let (resolutions, gaps) = (Vec::new(), Vec::new());
            return Ok(Some(ScanFindings { by: Finder::Rule, through, resolutions, gaps }));
        }
        let new_from =
            if scene.wanted > 0 { scene.marks.answers.min(scene.marks.gaps) } else { scene.marks.answers };
        let (known, label) = self.known(scene).await?;
        let matter = ReviewInput { talk: &scene.talk, new_from, open, known, wanted: scene.wanted };
        let (reply, usage) = model_review::ask(model, &matter).await;
        if let Some(usage) = usage {
            self.means.store.get().await?.spent(&scene.of, newest.turn.clone(), usage).await?;
        }
        let (believed, through) = match reply {
            Ok(believed) => (believed, scene.through()),
            Err(error) => {
                tracing::debug!(%error, "the model could not be asked about the conversation");
                (ReviewOutput::default(), scene.marks)
            }
        };
        // A model may have taken what it wrote from anything that it read.
        let read = scene.talk.iter().fold(label, |label, exchange| label.joined(&exchange.label));
        let told = believed.answers.into_iter();
        let resolutions = told.map(|told| self.resolution(scene, told, newest, read.clone())).collect();
        Ok(Some(ScanFindings { by: Finder::Model, through, resolutions, gaps: believed.gaps }))
    }

    /// What is known that may have to do with the conversation.
    async fn known(&self, scene: &ScanInput) -> Result<(Vec<String>, Label), StoreError> {
        let said: Vec<&str> =
            scene.talk.iter().rev().take(3).map(|exchange| exchange.said.as_str()).collect();
        let found = self.means.knowing.find(&scene.of.principal, &said.join(" "), None, MOST_KNOWN).await;
        match found {
            Ok(found) => {
                let label =
                    found.iter().fold(Label::default(), |label, entry| label.joined(&entry.source.label));
                Ok((found.iter().map(entry_line).collect(), label))
            }
            Err(crate::knowledge_base::KnowledgeBaseError::Store(error)) => Err(error),
            Err(_) => Ok((Vec::new(), Label::default())),
        }
    }

    /// An answer that must not be kept closes its inquiry all the same.
    fn resolution(&self, scene: &ScanInput, told: ReviewAnswer, exchange: &TurnTranscript, label: Label) -> Resolution {
        let ReviewAnswer { inquiry, answer, key, category, content } = told;
        let secrecy = &self.means.knowing.secrecy;
        if let Some(likeness) = secrecy.find_secret(&content).or_else(|| secrecy.find_secret(&answer)) {
            let answer = format!("not kept: it seems to hold {likeness}");
            return Resolution { inquiry, answer, entry: None };
        }
        let (session, turn) = (Some(scene.of.session.clone()), exchange.turn.clone());
        let source = Provenance { session, turn, by: format!("inquiry {inquiry}"), label };
        let entry = NewKnowledgeEntry { key, category, content, tags: Vec::new(), source, at: scene.now };
        Resolution { inquiry, answer, entry: Some(entry) }
    }

    fn settled(&self, scene: &ScanInput, findings: ScanFindings) -> ScanResult {
        let ScanFindings { by, through, resolutions, gaps } = findings;
        let secrecy = &self.means.knowing.secrecy;
        let may_be_kept =
            |gap: &Gap| secrecy.find_secret(&gap.question).is_none() && secrecy.find_secret(&gap.why).is_none();
        let turn = scene.talk.last().map(|newest| newest.turn.clone());
        let found = gaps.into_iter().filter(may_be_kept).take(scene.wanted).zip(turn.into_iter().cycle());
        let found = found.map(|(gap, turn)| {
            let Gap { topic, question, why, priority } = gap;
            NewInquiry { topic, question, why, priority, found_by: by, turn }
        });
        let before = scene.now.checked_sub(HOURS_BETWEEN.hours()).unwrap_or(Timestamp::MIN);
        ScanResult {
            behind: scene.marks,
            through,
            by,
            at: scene.now,
            resolutions,
            found: found.collect(),
            most_pending: self.means.settings.max_pending_inquiries.get() as usize,
            lapse: ExpiryRule { offers: MOST_OFFERS, before },
        }
    }
}

impl ScanInput {
    /// Exchanges behind a mark, each with the one before it.
    fn unread(&self, behind: u64) -> impl Iterator<Item = (Option<&TurnTranscript>, &TurnTranscript)> {
        let before = std::iter::once(None).chain(self.talk.iter().map(Some));
        before.zip(&self.talk).filter(move |(_, exchange)| exchange.through > behind)
    }

    /// Where the marks stand when all of it was looked at; gaps only where any were wanted.
    fn through(&self) -> ScanPosition {
        let newest = self.newest;
        ScanPosition { answers: newest, gaps: if self.wanted > 0 { newest } else { self.marks.gaps } }
    }

    /// Whether a later message says what would be asked about.
    fn is_said(&self, topic: &str) -> bool {
        self.unread(self.marks.gaps).any(|(_, exchange)| answer_rules::is_stated(&exchange.said, topic))
    }

    /// Those that were asked here, or whose topic is spoken of: a model is asked about no others.
    fn maybe_answered(&self) -> Vec<&Inquiry> {
        let said: HashSet<String> =
            self.unread(self.marks.answers).flat_map(|(_, exchange)| analyze(&exchange.said)).collect();
        let was_just_asked = |inquiry: &Inquiry| {
            let here = |offered: &&LastOffer| offered.session.as_ref() == Some(&self.of.session);
            let asked = inquiry.offered.as_ref().filter(here).map(|offered| offered.at);
            asked.is_some_and(|asked| {
                self.talk.iter().filter(|exchange| exchange.at > asked).count() <= MOST_TURNS_TO_ANSWER
            })
        };
        let is_spoken_of = |inquiry: &Inquiry| shared_words(&inquiry.topic, &said) > 0;
        self.pending.iter().filter(|inquiry| was_just_asked(inquiry) || is_spoken_of(inquiry)).collect()
    }
}

/// Who would search, and when a model was last asked.
struct ScanCooldown {
    by: Finder,
    asked: Option<Timestamp>,
    now: Timestamp,
}

/// Whether it is time to search for gaps: after so many turns, and where a model is asked after so many minutes, too.
/// Rules cost nothing and look at the first turn of a session at once; a model is not asked about single requests.
fn is_due(settings: &LibrarianSettings, talk: &[TurnTranscript], marks: ScanPosition, rest: ScanCooldown) -> bool {
    let unread = talk.iter().filter(|exchange| exchange.through > marks.gaps).count();
    let has_failed = talk.last().is_some_and(|newest| newest.answered.is_none());
    let has_turns = unread >= settings.inquiry_cooldown_turns.get() as usize;
    let limit = rest.now.checked_sub(i64::from(settings.inquiry_cooldown_minutes).minutes());
    let is_rested = rest.asked.is_none_or(|asked| limit.is_ok_and(|limit| asked <= limit));
    let is_time = match rest.by {
        Finder::Rule => marks.gaps == 0 || has_turns,
        Finder::Model => has_turns && is_rested,
    };
    !has_failed && unread > 0 && is_time
}
