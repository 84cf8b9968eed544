//! Offers one relevant pending inquiry to the answering agent, phrased so that it can be asked in
//! passing (S37).

use std::collections::HashSet;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::StoreError;
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::inquiries::{Finder, Inquiry};
use lango_domain::markers::INQUIRY_PREFIX;
use lango_domain::session::SessionKey;
use lango_domain::{Label, LabeledText};
use lango_text::sanitize::one_line;

use super::{Inquiries, answer_rules};
use lango_text::{analyze, analyze_query};

const TOKEN_CAP: usize = 160;
/// Most times that an inquiry is offered.
pub(super) const MAX_OFFERS: u32 = 3;
/// Hours between two offers of the same inquiry.
pub(super) const OFFER_INTERVAL_HOURS: i64 = 20;
/// Minutes between two offers in one session.
const SESSION_INTERVAL_MINUTES: i64 = 5;
/// Most bytes of a request that are analyzed.
const MAX_BYTES: usize = 4_000;

impl ContextSource for Inquiries {
    fn name(&self) -> &str {
        "inquiries"
    }

    fn max_tokens(&self) -> usize {
        TOKEN_CAP
    }

    fn gather(
        &self,
        request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        let inquiries = self.clone();
        async move {
            inquiries
                .offer(request)
                .await
                .map_err(|error| ContextError(error.to_string()))
        }
        .boxed()
    }
}

impl Inquiries {
    async fn offer(&self, request: ContextRequest) -> Result<Option<LabeledText>, StoreError> {
        let ContextRequest {
            session,
            principal,
            text,
        } = request;
        let key = SessionKey { session, principal };
        let store = self.parts.store.get().await?;
        let pending = store.pending(&key.principal).await?;
        let now = (self.parts.knowledge_base.now)();
        let Some(chosen) = choose_inquiry(&pending, &key, &text, now) else {
            return Ok(None);
        };
        let is_open = store.offer(&key, chosen.id, now).await?;
        Ok(is_open.then(|| LabeledText {
            text: offer_text(chosen),
            label: inquiry_label(chosen),
        }))
    }
}

/// Labels the question. Rules derive it from the user's own messages; a model has also read the
/// answers, which may contain text from untrusted sources.
fn inquiry_label(inquiry: &Inquiry) -> Label {
    let label = Label::private("inquiries");
    match inquiry.found_by {
        Finder::Rule => label,
        Finder::Model => label.joined(&Label::untrusted(
            "a question that a model found in a conversation",
        )),
    }
}

fn offer_text(inquiry: &Inquiry) -> String {
    let Inquiry {
        id, question, why, ..
    } = inquiry;
    format!(
        "{INQUIRY_PREFIX}{}\n(Inquiry {id}, because {}. Only where it fits: once, at the end of the \
        answer, in your own words and the user's language. If the user turns it down, dismiss it.)",
        one_line(question),
        one_line(why).trim_end_matches('.'),
    )
}

/// Chooses the inquiry that shares most words with the request, or else one from this session.
fn choose_inquiry<'a>(
    pending: &'a [Inquiry],
    key: &SessionKey,
    request: &str,
    now: Timestamp,
) -> Option<&'a Inquiry> {
    let is_before =
        |at: Timestamp, span: jiff::Span| now.checked_sub(span).is_ok_and(|limit| at < limit);
    let was_asked_recently = pending
        .iter()
        .filter_map(|inquiry| inquiry.offered.as_ref())
        .any(|offered| {
            offered.session.as_ref() == Some(&key.session)
                && !is_before(offered.at, SESSION_INTERVAL_MINUTES.minutes())
        });
    if was_asked_recently {
        return None;
    }
    let request = &request[..request.floor_char_boundary(MAX_BYTES.min(request.len()))];
    let can_be_asked = |inquiry: &&Inquiry| {
        let has_waited = inquiry
            .offered
            .as_ref()
            .is_none_or(|last| is_before(last.at, OFFER_INTERVAL_HOURS.hours()));
        // A topic that the request states is not asked about.
        inquiry.offers < MAX_OFFERS
            && has_waited
            && !answer_rules::is_stated(request, &inquiry.topic)
    };
    let request_terms: HashSet<String> = analyze(request).into_iter().collect();
    let candidates = pending.iter().filter(can_be_asked).filter_map(|inquiry| {
        let shared = count_shared_words(&inquiry.topic, &request_terms);
        (shared > 0 || inquiry.session == key.session).then_some((
            shared,
            inquiry.priority,
            inquiry,
        ))
    });
    // Inquiries are ordered oldest first, so the oldest wins a tie.
    let best = candidates.reduce(|best, next| {
        if (next.0, next.1) > (best.0, best.1) {
            next
        } else {
            best
        }
    });
    best.map(|(_, _, inquiry)| inquiry)
}

/// Counts the words of a topic that occur among these terms.
pub(super) fn count_shared_words(topic: &str, request_terms: &HashSet<String>) -> usize {
    analyze_query(topic)
        .iter()
        .filter(|word| word.iter().any(|one| request_terms.contains(one)))
        .count()
}
