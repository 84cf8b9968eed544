//! One pending inquiry that fits is put before whoever answers, worded so that it can be asked in passing (S37).

use std::collections::HashSet;

use futures::future::{BoxFuture, FutureExt};
use jiff::{Timestamp, ToSpan};
use lango_domain::inquiries::{Finder, Inquiry};
use lango_domain::seams::{ContextError, ContextRequest, ContextSource, SessionKey};
use lango_domain::session::StoreError;
use lango_domain::text::one_line;
use lango_domain::markers::ASK_IN_PASSING;
use lango_domain::{Label, Labelled};

use super::{Inquiries, answer_rules};
use crate::lexical::{analyze, analyze_query};

const CAP: usize = 160;
/// Nobody is asked the same more often.
pub(super) const MOST_OFFERS: u32 = 3;
/// So many hours lie between asking the same twice, so many minutes between asking anything in one session.
pub(super) const HOURS_BETWEEN: i64 = 20;
const MINUTES_BETWEEN: i64 = 5;
/// So much of a request is read.
const MOST_BYTES: usize = 4_000;

impl ContextSource for Inquiries {
    fn name(&self) -> &str {
        "inquiries"
    }

    fn cap(&self) -> usize {
        CAP
    }

    fn gather(&self, request: ContextRequest) -> BoxFuture<'static, Result<Option<Labelled>, ContextError>> {
        let inquiries = self.clone();
        async move { inquiries.offer(request).await.map_err(|error| ContextError(error.to_string())) }.boxed()
    }
}

impl Inquiries {
    async fn offer(&self, request: ContextRequest) -> Result<Option<Labelled>, StoreError> {
        let ContextRequest { session, principal, text } = request;
        let of = SessionKey { session, principal };
        let store = self.means.store.get().await?;
        let pending = store.pending(&of.principal).await?;
        let now = (self.means.knowing.now)();
        let Some(chosen) = choose(&pending, &of, &text, now) else { return Ok(None) };
        let is_open = store.offer(&of, chosen.id, now).await?;
        Ok(is_open.then(|| Labelled { text: worded(chosen), label: label_of(chosen) }))
    }
}

/// The question was made of what was said in a conversation. Rules take it from the user's own words; a model read the
/// answers as well, and those may hold anybody's.
fn label_of(inquiry: &Inquiry) -> Label {
    let label = Label::private("inquiries");
    match inquiry.found_by {
        Finder::Rule => label,
        Finder::Model => label.joined(&Label::untrusted("a question that a model found in a conversation")),
    }
}

fn worded(inquiry: &Inquiry) -> String {
    let Inquiry { id, question, why, .. } = inquiry;
    format!(
        "{ASK_IN_PASSING}{}\n(Inquiry {id}, because {}. Only where it fits: once, at the end of the answer, in your own words and \
         the user's language. If the user turns it down, dismiss it.)",
        one_line(question),
        one_line(why).trim_end_matches('.'),
    )
}

/// The one that has most to do with the request; without such a one, what this very conversation left open.
fn choose<'a>(
    pending: &'a [Inquiry],
    of: &SessionKey,
    request: &str,
    now: Timestamp,
) -> Option<&'a Inquiry> {
    let is_before = |at: Timestamp, span: jiff::Span| now.checked_sub(span).is_ok_and(|limit| at < limit);
    let just_asked = pending.iter().filter_map(|inquiry| inquiry.offered.as_ref()).any(|offered| {
        offered.session.as_ref() == Some(&of.session) && !is_before(offered.at, MINUTES_BETWEEN.minutes())
    });
    if just_asked {
        return None;
    }
    let request = &request[..request.floor_char_boundary(MOST_BYTES.min(request.len()))];
    let may_be_asked = |inquiry: &&Inquiry| {
        let rested = inquiry.offered.as_ref().is_none_or(|last| is_before(last.at, HOURS_BETWEEN.hours()));
        // What the request says is not asked back.
        inquiry.offers < MOST_OFFERS && rested && !answer_rules::is_stated(request, &inquiry.topic)
    };
    let said: HashSet<String> = analyze(request).into_iter().collect();
    let fitting = pending.iter().filter(may_be_asked).filter_map(|inquiry| {
        let shared = shared_words(&inquiry.topic, &said);
        (shared > 0 || inquiry.session == of.session).then_some((shared, inquiry.priority, inquiry))
    });
    // Of equals the oldest: it comes first.
    let best = fitting.reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
    best.map(|(_, _, inquiry)| inquiry)
}

/// How many words of a topic are said.
pub(super) fn shared_words(topic: &str, said: &HashSet<String>) -> usize {
    analyze_query(topic).iter().filter(|word| word.iter().any(|one| said.contains(one))).count()
}
