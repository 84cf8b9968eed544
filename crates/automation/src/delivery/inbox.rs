//! Deliveries to the inbox, and its entries about deliveries that failed.

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::automation::{DeliveryMessage, NewInboxEntry};
use lango_text::sanitize::truncated_line;

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::{MAX_TITLE_CHARS, OutgoingMessage, capped_text};

/// Size limit of the text of an entry.
const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// Cannot fail: the entry is stored together with the end of the delivery.
pub(super) struct InboxSender;

impl DeliverySender for InboxSender {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        let (title, text) = (
            message.title(MAX_TITLE_CHARS),
            message.text(MAX_ENTRY_BYTES),
        );
        ready(Ok(SentMessage {
            inbox: Some(entry(message, title, text)),
        }))
        .boxed()
    }
}

/// Returns the entry about a delivery that was given up. It contains the message, so that it is not
/// lost.
pub(super) fn failure_entry(
    message: OutgoingMessage<'_>,
    target: &str,
    error: &str,
) -> NewInboxEntry {
    let title = truncated_line(
        &format!(
            "Not delivered to {target}: {}",
            message.title(MAX_TITLE_CHARS)
        ),
        MAX_TITLE_CHARS,
    );
    let text = format!(
        "{}\n\n{}",
        capped_text(error, 1_000),
        message.text(MAX_ENTRY_BYTES)
    );
    entry(message, title, text)
}

fn entry(message: OutgoingMessage<'_>, title: String, text: String) -> NewInboxEntry {
    let delivery = message.delivery;
    NewInboxEntry {
        at: message.sent_at,
        principal: delivery.principal.clone(),
        message: DeliveryMessage {
            from: truncated_line(&delivery.message.from, MAX_TITLE_CHARS),
            title,
            text,
            session: delivery.message.session.clone(),
            label: delivery.message.label.clone(),
            workspace: None,
        },
    }
}
