//! A look at a conversation after a turn: who was answered, and what is worth asking. Off the turn's path.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::Label;
use lango_domain::hooks::AfterTurn;
use lango_domain::inquiries::{
    ExpiryRule, Finder, Inquiry, LastOffer, NewInquiry, Resolution, ScanPosition, ScanProgress,
    ScanResult,
};
use lango_domain::knowledge::{NewKnowledgeEntry, Provenance};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;
use lango_domain::session::StoreError;

use super::gap_rules::{self, Gap, KnownTopics};
use super::model_review::{self, ReviewAnswer, ReviewInput, ReviewOutput};
use super::offer::{MAX_OFFERS, OFFER_INTERVAL_HOURS, count_shared_words};
use super::{Inquiries, LibrarianSettings, answer_rules};
use crate::knowledge_base::entry_line;
use crate::lexical::analyze;
use crate::request_detection::is_forget_request;
use crate::turn_transcript::{self, TurnTranscript};

/// So many new inquiries come of one look.
const MAX_RESULTS: usize = 2;
/// So many turns behind the question a model is asked whether it was answered.
const MAX_TURNS_TO_ANSWER: usize = 2;
/// A model is told so much of what is known.
const MAX_KNOWN: usize = 20;

impl AfterTurn for Inquiries {
    fn on_turn_end(&self, of: SessionKey) -> BoxFuture<'static, ()> {
        let inquiries = self.clone();
        async move {
            if let Err(error) = inquiries.scan(&of).await {
                tracing::warn!(%error, "the conversation could not be searched for what is worth asking");
            }
        }
        .boxed()
    }
}

/// What a look begins with.
struct ScanInput {
    key: SessionKey,
    /// Without what was forgotten, and without asking to forget.
    turns: Vec<TurnTranscript>,
    /// The last event that was looked at.
    last_seq: u64,
    pending: Vec<Inquiry>,
    position: ScanPosition,
    now: Timestamp,
    /// How many gaps may be found; none while it is too early, or enough is pending.
    max_gaps: usize,
}

/// What a look gave.
struct ScanFindings {
    by: Finder,
    through: ScanPosition,
    resolutions: Vec<Resolution>,
    gaps: Vec<Gap>,
}

impl Inquiries {
    async fn scan(&self, of: &SessionKey) -> Result<(), StoreError> {
        let _alone = self.scan_lock.lock().await;
        let Some(scene) = self.load_scan_input(of).await? else {
            return Ok(());
        };
        let findings = match &self.parts.model {
            Some(model) => self.scan_with_model(model, &scene).await?,
            None => Some(self.scan_by_rules(&scene).await?),
        };
        let Some(findings) = findings else {
            return Ok(());
        };
        let settled = self.scan_result(&scene, findings);
        self.parts.store.get().await?.save_scan(of, settled).await
    }

    /// Nothing when every turn that ended was looked at.
    async fn load_scan_input(&self, of: &SessionKey) -> Result<Option<ScanInput>, StoreError> {
        let store = self.parts.store.get().await?;
        let ScanProgress {
            position: marks,
            last_model_call: asked,
        } = store.progress(of).await?;
        let behind = marks.answers.min(marks.gaps);
        let talk = turn_transcript::turn_transcripts(
            &turn_transcript::load_finished_turns(&*self.parts.sessions, of, behind).await?,
        );
        let Some(newest) = talk
            .last()
            .map(|newest| newest.through)
            .filter(|newest| *newest > behind)
        else {
            return Ok(None);
        };
        let talk = self.drop_forgotten(of, talk).await?;
        let pending = store.pending(&of.principal).await?;
        let now = (self.parts.knowledge_base.now)();
        let settings = &self.parts.settings;
        let room = (settings.max_pending_inquiries.get() as usize).saturating_sub(pending.len());
        let rest = ScanCooldown {
            by: self.finder(),
            last_asked: asked,
            now,
        };
        let wanted = if is_due(settings, &talk, marks, rest) {
            room.min(MAX_RESULTS)
        } else {
            0
        };
        Ok(Some(ScanInput {
            key: of.clone(),
            turns: talk,
            last_seq: newest,
            pending,
            position: marks,
            now,
            max_gaps: wanted,
        }))
    }

    async fn drop_forgotten(
        &self,
        of: &SessionKey,
        talk: Vec<TurnTranscript>,
    ) -> Result<Vec<TurnTranscript>, StoreError> {
        let requests = talk
            .iter()
            .map(|exchange| (exchange.turn.clone(), exchange.seq))
            .collect();
        let forgotten = self
            .parts
            .memories
            .forgotten_events(&of.principal, requests)
            .await?;
        let may_be_read = |exchange: &TurnTranscript| {
            !forgotten.contains(&exchange.seq)
                && !answer_rules::sentences(&exchange.request).any(is_forget_request)
        };
        Ok(talk.into_iter().filter(may_be_read).collect())
    }

    fn finder(&self) -> Finder {
        if self.parts.model.is_some() {
            Finder::Model
        } else {
            Finder::Rule
        }
    }

    async fn scan_by_rules(&self, scene: &ScanInput) -> Result<ScanFindings, StoreError> {
        let mut resolutions = Vec::new();
        for inquiry in &scene.pending {
            let answered =
                scene
                    .unread_turns(scene.position.answers)
                    .find_map(|(before, exchange)| {
                        let before = before.and_then(|before| before.answer.as_deref());
                        answer_rules::find_answer(inquiry, &exchange.request, before)
                            .map(|said| (said, exchange))
                    });
            resolutions.extend(answered.map(|(said, exchange)| {
                let told = ReviewAnswer {
                    inquiry: inquiry.id,
                    answer: said.answer,
                    key: inquiry.topic.clone(),
                    category: answer_rules::answer_category(&inquiry.topic),
                    content: said.content,
                };
                self.build_resolution(scene, told, exchange, exchange.request_label.clone())
            }));
        }
        let mut gaps = Vec::new();
        if scene.max_gaps > 0 {
            let entries = self
                .parts
                .knowledge_base
                .store
                .get()
                .await?
                .entries(&scene.key.principal)
                .await?;
            let known = KnownTopics::from_entries(&entries);
            gaps.extend(
                scene
                    .unread_turns(scene.position.gaps)
                    .flat_map(|(_, exchange)| gap_rules::find_gaps(exchange, &known)),
            );
            // What was answered in the very same words is no gap.
            gaps.retain(|gap| !scene.is_topic_stated(&gap.topic));
        }
        Ok(ScanFindings {
            by: Finder::Rule,
            through: scene.position_after(),
            resolutions,
            gaps,
        })
    }

    /// Nothing when nobody can be asked now; what is new waits for the next look.
    async fn scan_with_model(
        &self,
        model: &Arc<dyn Model>,
        scene: &ScanInput,
    ) -> Result<Option<ScanFindings>, StoreError> {
        let newest = scene.turns.last().filter(|newest| newest.answer.is_some());
        let Some(newest) = newest else {
            return Ok(None);
        };
        let open = scene.possibly_answered();
        let has_news = scene
            .unread_turns(scene.position.answers.min(scene.position.gaps))
            .next()
            .is_some();
        if !has_news || (open.is_empty() && scene.max_gaps == 0) {
            let through = ScanPosition {
                answers: scene.last_seq,
                ..scene.position
            };
            let (resolutions, gaps) = (Vec::new(), Vec::new());
            return Ok(Some(ScanFindings {
                by: Finder::Rule,
                through,
                resolutions,
                gaps,
            }));
        }
        let new_from = if scene.max_gaps > 0 {
            scene.position.answers.min(scene.position.gaps)
        } else {
            scene.position.answers
        };
        let (known, label) = self.related_knowledge(scene).await?;
        let matter = ReviewInput {
            turns: &scene.turns,
            new_after: new_from,
            open_inquiries: open,
            known,
            max_gaps: scene.max_gaps,
        };
        let (reply, usage) = model_review::ask_model(model, &matter).await;
        if let Some(usage) = usage {
            self.parts
                .store
                .get()
                .await?
                .record_usage(&scene.key, newest.turn.clone(), usage)
                .await?;
        }
        let (believed, through) = match reply {
            Ok(believed) => (believed, scene.position_after()),
            Err(error) => {
                tracing::debug!(%error, "the model could not be asked about the conversation");
                (ReviewOutput::default(), scene.position)
            }
        };
        // A model may have taken what it wrote from anything that it read.
        let read = scene
            .turns
            .iter()
            .fold(label, |label, exchange| label.joined(&exchange.label));
        let told = believed.answers.into_iter();
        let resolutions = told
            .map(|told| self.build_resolution(scene, told, newest, read.clone()))
            .collect();
        Ok(Some(ScanFindings {
            by: Finder::Model,
            through,
            resolutions,
            gaps: believed.gaps,
        }))
    }

    /// What is known that may have to do with the conversation.
    async fn related_knowledge(
        &self,
        scene: &ScanInput,
    ) -> Result<(Vec<String>, Label), StoreError> {
        let said: Vec<&str> = scene
            .turns
            .iter()
            .rev()
            .take(3)
            .map(|exchange| exchange.request.as_str())
            .collect();
        let found = self
            .parts
            .knowledge_base
            .find(&scene.key.principal, &said.join(" "), None, MAX_KNOWN)
            .await;
        match found {
            Ok(found) => {
                let label = found.iter().fold(Label::default(), |label, entry| {
                    label.joined(&entry.source.label)
                });
                Ok((found.iter().map(entry_line).collect(), label))
            }
            Err(crate::knowledge_base::KnowledgeBaseError::Store(error)) => Err(error),
            Err(_) => Ok((Vec::new(), Label::default())),
        }
    }

    /// An answer that must not be kept closes its inquiry all the same.
    fn build_resolution(
        &self,
        scene: &ScanInput,
        told: ReviewAnswer,
        exchange: &TurnTranscript,
        label: Label,
    ) -> Resolution {
        let ReviewAnswer {
            inquiry,
            answer,
            key,
            category,
            content,
        } = told;
        let secrecy = &self.parts.knowledge_base.secret_scanner;
        if let Some(likeness) = secrecy
            .find_secret(&content)
            .or_else(|| secrecy.find_secret(&answer))
        {
            let answer = format!("not kept: it seems to hold {likeness}");
            return Resolution {
                inquiry,
                answer,
                entry: None,
            };
        }
        let (session, turn) = (Some(scene.key.session.clone()), exchange.turn.clone());
        let source = Provenance {
            session,
            turn,
            by: format!("inquiry {inquiry}"),
            label,
        };
        let entry = NewKnowledgeEntry {
            key,
            category,
            content,
            tags: Vec::new(),
            source,
            at: scene.now,
        };
        Resolution {
            inquiry,
            answer,
            entry: Some(entry),
        }
    }

    fn scan_result(&self, scene: &ScanInput, findings: ScanFindings) -> ScanResult {
        let ScanFindings {
            by,
            through,
            resolutions,
            gaps,
        } = findings;
        let secrecy = &self.parts.knowledge_base.secret_scanner;
        let may_be_kept = |gap: &Gap| {
            secrecy.find_secret(&gap.question).is_none() && secrecy.find_secret(&gap.why).is_none()
        };
        let turn = scene.turns.last().map(|newest| newest.turn.clone());
        let found = gaps
            .into_iter()
            .filter(may_be_kept)
            .take(scene.max_gaps)
            .zip(turn.into_iter().cycle());
        let found = found.map(|(gap, turn)| {
            let Gap {
                topic,
                question,
                why,
                priority,
            } = gap;
            NewInquiry {
                topic,
                question,
                reason: why,
                priority,
                found_by: by,
                turn,
            }
        });
        let before = scene
            .now
            .checked_sub(OFFER_INTERVAL_HOURS.hours())
            .unwrap_or(Timestamp::MIN);
        ScanResult {
            after: scene.position,
            through,
            by,
            at: scene.now,
            resolutions,
            new_inquiries: found.collect(),
            max_pending: self.parts.settings.max_pending_inquiries.get() as usize,
            expiry: ExpiryRule {
                offers: MAX_OFFERS,
                before,
            },
        }
    }
}

impl ScanInput {
    /// Exchanges behind a mark, each with the one before it.
    fn unread_turns(
        &self,
        behind: u64,
    ) -> impl Iterator<Item = (Option<&TurnTranscript>, &TurnTranscript)> {
        let before = std::iter::once(None).chain(self.turns.iter().map(Some));
        before
            .zip(&self.turns)
            .filter(move |(_, exchange)| exchange.through > behind)
    }

    /// Where the marks stand when all of it was looked at; gaps only where any were wanted.
    fn position_after(&self) -> ScanPosition {
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

    /// Whether a later message says what would be asked about.
    fn is_topic_stated(&self, topic: &str) -> bool {
        self.unread_turns(self.position.gaps)
            .any(|(_, exchange)| answer_rules::is_stated(&exchange.request, topic))
    }

    /// Those that were asked here, or whose topic is spoken of: a model is asked about no others.
    fn possibly_answered(&self) -> Vec<&Inquiry> {
        let said: HashSet<String> = self
            .unread_turns(self.position.answers)
            .flat_map(|(_, exchange)| analyze(&exchange.request))
            .collect();
        let was_just_asked = |inquiry: &Inquiry| {
            let here = |offered: &&LastOffer| offered.session.as_ref() == Some(&self.key.session);
            let asked = inquiry
                .offered
                .as_ref()
                .filter(here)
                .map(|offered| offered.at);
            asked.is_some_and(|asked| {
                self.turns
                    .iter()
                    .filter(|exchange| exchange.at > asked)
                    .count()
                    <= MAX_TURNS_TO_ANSWER
            })
        };
        let is_spoken_of = |inquiry: &Inquiry| count_shared_words(&inquiry.topic, &said) > 0;
        self.pending
            .iter()
            .filter(|inquiry| was_just_asked(inquiry) || is_spoken_of(inquiry))
            .collect()
    }
}

/// Who would search, and when a model was last asked.
struct ScanCooldown {
    by: Finder,
    last_asked: Option<Timestamp>,
    now: Timestamp,
}

/// Whether it is time to search for gaps: after so many turns, and where a model is asked after so many minutes, too.
/// Rules cost nothing and look at the first turn of a session at once; a model is not asked about single requests.
fn is_due(
    settings: &LibrarianSettings,
    talk: &[TurnTranscript],
    marks: ScanPosition,
    rest: ScanCooldown,
) -> bool {
    let unread = talk
        .iter()
        .filter(|exchange| exchange.through > marks.gaps)
        .count();
    let has_failed = talk.last().is_some_and(|newest| newest.answer.is_none());
    let has_turns = unread >= settings.inquiry_cooldown_turns.get() as usize;
    let limit = rest
        .now
        .checked_sub(i64::from(settings.inquiry_cooldown_minutes).minutes());
    let is_rested = rest
        .last_asked
        .is_none_or(|asked| limit.is_ok_and(|limit| asked <= limit));
    let is_time = match rest.by {
        Finder::Rule => marks.gaps == 0 || has_turns,
        Finder::Model => has_turns && is_rested,
    };
    !has_failed && unread > 0 && is_time
}
