//! One pending inquiry that fits is put before whoever answers, worded so that it can be asked in passing (S37).

use std::collections::HashSet;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::inquiries::{Finder, Inquiry};
use lango_domain::markers::INQUIRY_PREFIX;
use lango_domain::session::SessionKey;
use lango_domain::session::StoreError;
use lango_domain::text::one_line;
use lango_domain::{Label, LabeledText};

use super::{Inquiries, answer_rules};
use crate::lexical::{analyze, analyze_query};

const TOKEN_CAP: usize = 160;
/// Nobody is asked the same more often.
pub(super) const MAX_OFFERS: u32 = 3;
/// So many hours lie between asking the same twice, so many minutes between asking anything in one session.
pub(super) const OFFER_INTERVAL_HOURS: i64 = 20;
const SESSION_INTERVAL_MINUTES: i64 = 5;
/// So much of a request is read.
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
        let of = SessionKey { session, principal };
        let store = self.parts.store.get().await?;
        let pending = store.pending(&of.principal).await?;
        let now = (self.parts.knowledge_base.now)();
        let Some(chosen) = choose_inquiry(&pending, &of, &text, now) else {
            return Ok(None);
        };
        let is_open = store.offer(&of, chosen.id, now).await?;
        Ok(is_open.then(|| LabeledText {
            text: offer_text(chosen),
            label: inquiry_label(chosen),
        }))
    }
}

/// The question was made of what was said in a conversation. Rules take it from the user's own words; a model read the
/// answers as well, and those may hold anybody's.
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
        "{INQUIRY_PREFIX}{}\n(Inquiry {id}, because {}. Only where it fits: once, at the end of the answer, in your own words and \
         the user's language. If the user turns it down, dismiss it.)",
        one_line(question),
        one_line(why).trim_end_matches('.'),
    )
}

/// The one that has most to do with the request; without such a one, what this very conversation left open.
fn choose_inquiry<'a>(
    pending: &'a [Inquiry],
    of: &SessionKey,
    request: &str,
    now: Timestamp,
) -> Option<&'a Inquiry> {
    let is_before =
        |at: Timestamp, span: jiff::Span| now.checked_sub(span).is_ok_and(|limit| at < limit);
    let just_asked = pending
        .iter()
        .filter_map(|inquiry| inquiry.offered.as_ref())
        .any(|offered| {
            offered.session.as_ref() == Some(&of.session)
                && !is_before(offered.at, SESSION_INTERVAL_MINUTES.minutes())
        });
    if just_asked {
        return None;
    }
    let request = &request[..request.floor_char_boundary(MAX_BYTES.min(request.len()))];
    let may_be_asked = |inquiry: &&Inquiry| {
        let rested = inquiry
            .offered
            .as_ref()
            .is_none_or(|last| is_before(last.at, OFFER_INTERVAL_HOURS.hours()));
        // What the request says is not asked back.
        inquiry.offers < MAX_OFFERS && rested && !answer_rules::is_stated(request, &inquiry.topic)
    };
    let said: HashSet<String> = analyze(request).into_iter().collect();
    let fitting = pending.iter().filter(may_be_asked).filter_map(|inquiry| {
        let shared = count_shared_words(&inquiry.topic, &said);
        (shared > 0 || inquiry.session == of.session).then_some((shared, inquiry.priority, inquiry))
    });
    // Of equals the oldest: it comes first.
    let best = fitting.reduce(|best, next| {
        if (next.0, next.1) > (best.0, best.1) {
            next
        } else {
            best
        }
    });
    best.map(|(_, _, inquiry)| inquiry)
}

/// How many words of a topic are said.
pub(super) fn count_shared_words(topic: &str, said: &HashSet<String>) -> usize {
    analyze_query(topic)
        .iter()
        .filter(|word| word.iter().any(|one| said.contains(one)))
        .count()
}
