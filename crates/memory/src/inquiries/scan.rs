//! Scans a conversation after a turn, in the background: finds answers to pending inquiries and new
//! gaps to ask about.

mod input;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::Label;
use lango_domain::StoreError;
use lango_domain::hooks::AfterTurn;
use lango_domain::inquiries::{
    ExpiryRule, Finder, Inquiry, NewInquiry, Resolution, ScanPosition, ScanResult,
};
use lango_domain::knowledge::{NewKnowledgeEntry, Provenance};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;

use super::gap_rules::{self, Gap, KnownTopics};
use super::model_review::{self, ReviewAnswer, ReviewInput, ReviewOutput};
use super::offer::{MAX_OFFERS, OFFER_INTERVAL_HOURS};
use super::{Inquiries, answer_rules};
use crate::knowledge_base::{KnowledgeBaseError, entry_line};
use crate::turn_transcript::TurnTranscript;
use input::ScanInput;

/// Most knowledge entries that the model reads.
const MAX_KNOWN: usize = 20;

impl AfterTurn for Inquiries {
    fn on_turn_end(&self, key: SessionKey) -> BoxFuture<'static, ()> {
        let inquiries = self.clone();
        async move {
            if let Err(error) = inquiries.scan(&key).await {
                tracing::warn!(%error, "the conversation could not be scanned for inquiries");
            }
        }
        .boxed()
    }
}

/// The findings of a scan.
struct ScanFindings {
    by: Finder,
    through: ScanPosition,
    resolutions: Vec<Resolution>,
    gaps: Vec<Gap>,
}

impl Inquiries {
    async fn scan(&self, key: &SessionKey) -> Result<(), StoreError> {
        let _guard = self.scan_lock.lock().await;
        let Some(input) = self.load_scan_input(key).await? else {
            return Ok(());
        };
        let findings = match &self.parts.model {
            Some(model) => self.scan_with_model(model, &input).await?,
            None => Some(self.scan_by_rules(&input).await?),
        };
        let Some(findings) = findings else {
            return Ok(());
        };
        let result = self.scan_result(&input, findings);
        self.parts.store.get().await?.save_scan(key, result).await
    }

    async fn scan_by_rules(&self, input: &ScanInput) -> Result<ScanFindings, StoreError> {
        let mut resolutions = Vec::new();
        for inquiry in &input.pending {
            let mut unread = input.unread_turns(input.position.answers);
            let found = unread.find_map(|(previous, turn)| {
                let previous_answer = previous.and_then(|previous| previous.answer.as_deref());
                let answer = answer_rules::find_answer(inquiry, &turn.request, previous_answer)?;
                Some((answer, turn))
            });
            resolutions.extend(found.map(|(found, turn)| {
                let answer = ReviewAnswer {
                    inquiry: inquiry.id,
                    answer: found.answer,
                    key: inquiry.topic.clone(),
                    category: answer_rules::answer_category(&inquiry.topic),
                    content: found.content,
                };
                self.build_resolution(input, answer, turn, turn.request_label.clone())
            }));
        }
        let mut gaps = Vec::new();
        if input.max_gaps > 0 {
            let store = self.parts.knowledge_base.store.get().await?;
            let entries = store.entries(&input.key.principal).await?;
            let known = KnownTopics::from_entries(&entries);
            gaps.extend(
                input
                    .unread_turns(input.position.gaps)
                    .flat_map(|(_, turn)| gap_rules::find_gaps(turn, &known)),
            );
            // A topic that another message states is not a gap.
            gaps.retain(|gap| !input.is_topic_stated(&gap.topic));
        }
        Ok(ScanFindings {
            by: Finder::Rule,
            through: input.position_after(),
            resolutions,
            gaps,
        })
    }

    /// Returns `None` if the last turn has no answer; its turns wait for the next scan.
    async fn scan_with_model(
        &self,
        model: &Arc<dyn Model>,
        input: &ScanInput,
    ) -> Result<Option<ScanFindings>, StoreError> {
        let newest = input.turns.last().filter(|newest| newest.answer.is_some());
        let Some(newest) = newest else {
            return Ok(None);
        };
        let open_inquiries = input.possibly_answered();
        let has_new_turns = input.unread_turns(input.oldest_position()).next().is_some();
        if has_new_turns && (!open_inquiries.is_empty() || input.max_gaps > 0) {
            let findings = self.review(model, input, newest, open_inquiries).await?;
            return Ok(Some(findings));
        }
        Ok(Some(ScanFindings {
            by: Finder::Rule,
            through: ScanPosition {
                answers: input.last_seq,
                ..input.position
            },
            resolutions: Vec::new(),
            gaps: Vec::new(),
        }))
    }

    /// Calls the model. If it fails, the position does not advance and the next scan tries again.
    async fn review(
        &self,
        model: &Arc<dyn Model>,
        input: &ScanInput,
        newest: &TurnTranscript,
        open_inquiries: Vec<&Inquiry>,
    ) -> Result<ScanFindings, StoreError> {
        let (known, label) = self.related_knowledge(input).await?;
        let review_input = ReviewInput {
            turns: &input.turns,
            new_after: if input.max_gaps > 0 {
                input.oldest_position()
            } else {
                input.position.answers
            },
            open_inquiries,
            known,
            max_gaps: input.max_gaps,
        };
        let (reply, usage) = model_review::ask_model(model, &review_input).await;
        if let Some(usage) = usage {
            let store = self.parts.store.get().await?;
            store
                .record_usage(&input.key, newest.turn.clone(), usage)
                .await?;
        }
        let (output, through) = match reply {
            Ok(output) => (output, input.position_after()),
            Err(error) => {
                tracing::debug!(%error, "the model could not review the conversation");
                (ReviewOutput::default(), input.position)
            }
        };
        // The model's answers may derive from anything that it read.
        let read_label = input
            .turns
            .iter()
            .fold(label, |label, turn| label.joined(&turn.label));
        let answers = output.answers.into_iter();
        let resolutions = answers
            .map(|answer| self.build_resolution(input, answer, newest, read_label.clone()))
            .collect();
        Ok(ScanFindings {
            by: Finder::Model,
            through,
            resolutions,
            gaps: output.gaps,
        })
    }

    /// Returns the knowledge entries that may be related to the conversation, with their label.
    async fn related_knowledge(
        &self,
        input: &ScanInput,
    ) -> Result<(Vec<String>, Label), StoreError> {
        let requests: Vec<&str> = input
            .turns
            .iter()
            .rev()
            .take(3)
            .map(|turn| turn.request.as_str())
            .collect();
        let found = self
            .parts
            .knowledge_base
            .find(&input.key.principal, &requests.join(" "), None, MAX_KNOWN)
            .await;
        match found {
            Ok(found) => {
                let label = found.iter().fold(Label::default(), |label, entry| {
                    label.joined(&entry.source.label)
                });
                Ok((found.iter().map(entry_line).collect(), label))
            }
            Err(KnowledgeBaseError::Store(error)) => Err(error),
            Err(_) => Ok((Vec::new(), Label::default())),
        }
    }

    /// Builds the resolution of an inquiry. An answer with a secret closes the inquiry but is not saved.
    fn build_resolution(
        &self,
        input: &ScanInput,
        review_answer: ReviewAnswer,
        turn: &TurnTranscript,
        label: Label,
    ) -> Resolution {
        let ReviewAnswer {
            inquiry,
            answer,
            key,
            category,
            content,
        } = review_answer;
        let secret_scanner = &self.parts.knowledge_base.secret_scanner;
        if let Some(kind) = secret_scanner
            .find_secret(&content)
            .or_else(|| secret_scanner.find_secret(&answer))
        {
            let answer = format!("not saved: it seems to contain {kind}");
            return Resolution {
                inquiry,
                answer,
                entry: None,
            };
        }
        let (session, turn) = (Some(input.key.session.clone()), turn.turn.clone());
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
            at: input.now,
        };
        Resolution {
            inquiry,
            answer,
            entry: Some(entry),
        }
    }

    fn scan_result(&self, input: &ScanInput, findings: ScanFindings) -> ScanResult {
        let ScanFindings {
            by,
            through,
            resolutions,
            gaps,
        } = findings;
        let secret_scanner = &self.parts.knowledge_base.secret_scanner;
        let can_be_stored = |gap: &Gap| {
            secret_scanner.find_secret(&gap.question).is_none()
                && secret_scanner.find_secret(&gap.why).is_none()
        };
        let turn = input.turns.last().map(|newest| newest.turn.clone());
        let accepted = gaps
            .into_iter()
            .filter(can_be_stored)
            .take(input.max_gaps)
            .zip(turn.into_iter().cycle());
        let new_inquiries = accepted.map(|(gap, turn)| {
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
        let before = input
            .now
            .checked_sub(OFFER_INTERVAL_HOURS.hours())
            .unwrap_or(Timestamp::MIN);
        ScanResult {
            after: input.position,
            through,
            by,
            at: input.now,
            resolutions,
            new_inquiries: new_inquiries.collect(),
            max_pending: self.parts.settings.max_pending_inquiries.get() as usize,
            expiry: ExpiryRule {
                offers: MAX_OFFERS,
                before,
            },
        }
    }
}
