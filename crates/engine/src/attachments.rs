//! Attachments in requests to models: which are sent, and loading their bytes.

use std::collections::HashMap;
use std::sync::Arc;

use lango_domain::content::{
    Attachment, AttachmentKind, BlobData, BlobId, MAX_ATTACHMENTS, MAX_MESSAGE_BYTES,
};
use lango_domain::model::{Message, ModelRequest};
use lango_domain::session::SessionKeyRef;
use lango_domain::{Content, ReadableKinds};

use crate::driver::Driver;
use crate::turn_error::TurnError;

/// Returns content with a short text in place of attachments that a model cannot read.
pub(crate) fn replace_unreadable(content: &Content, readable: ReadableKinds) -> Content {
    content.replace_attachments(|attachment| {
        let is_readable = readable.contains(attachment.kind());
        let why = match attachment.is_text() {
            true => "the request has its text",
            false => "this model cannot read it",
        };
        (!is_readable).then(|| describe(attachment, why))
    })
}

impl Driver {
    /// Returns the request with the bytes of its attachments. Older attachments than fit into one
    /// request, and lost ones, become a short text.
    pub(crate) async fn load_attachments(
        &self,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, TurnError> {
        let mut contents: Vec<&mut Content> =
            request.messages.iter_mut().flat_map(contents_mut).collect();
        let sizes = contents
            .iter()
            .flat_map(|content| content.attachments_in_order());
        let sizes: Vec<u64> = sizes.map(|attachment| attachment.size).collect();
        let mut index = 0..;
        let first_sent = first_sent(&sizes);
        for content in &mut contents {
            if !content.attachments.is_empty() {
                let is_sent =
                    |_: &Attachment| index.next().is_some_and(|index| index >= first_sent);
                **content = self.load_content(content, is_sent).await?;
            }
        }
        Ok(request)
    }

    async fn load_content(
        &self,
        content: &Content,
        is_sent: impl FnMut(&Attachment) -> bool,
    ) -> Result<Content, TurnError> {
        let ordered = content.attachments_in_order();
        let sent: Vec<bool> = ordered.iter().copied().map(is_sent).collect();
        let mut loaded: HashMap<BlobId, BlobData> = HashMap::new();
        for (attachment, is_sent) in ordered.iter().zip(&sent) {
            if *is_sent && !loaded.contains_key(&attachment.blob) {
                loaded.insert(attachment.blob.clone(), self.load_data(attachment).await?);
            }
        }
        let mut sent = sent.into_iter();
        Ok(content.rewrite_attachments(|attachment| {
            let data = loaded.get(&attachment.blob).cloned().unwrap_or_default();
            match (sent.next().unwrap_or_default(), data.bytes().is_some()) {
                (true, true) => {
                    let attachment = Attachment {
                        data,
                        ..attachment.clone()
                    };
                    (Some(caption(&attachment)), Some(attachment))
                }
                (true, false) => (Some(describe(attachment, "its content is lost")), None),
                (false, _) => (
                    Some(describe(attachment, "left out: the request is full")),
                    None,
                ),
            }
        }))
    }

    async fn load_data(&self, attachment: &Attachment) -> Result<BlobData, TurnError> {
        if attachment.data.bytes().is_some() {
            return Ok(attachment.data.clone());
        }
        let key = SessionKeyRef {
            session: &self.log.session,
            principal: &self.log.principal,
        };
        let blob = self.wait(self.blobs.blob(key, &attachment.blob)).await??;
        // The size in the event decides what is sent, so other bytes do not count.
        let blob = blob.filter(|bytes: &Arc<[u8]>| bytes.len() as u64 == attachment.size);
        Ok(blob.map_or_else(BlobData::default, BlobData::loaded))
    }
}

/// Returns the index of the first attachment that is sent, given all sizes, oldest first. Older ones are
/// left out in steps of half of what fits, so that consecutive requests share a prefix for a while (B40).
fn first_sent(sizes: &[u64]) -> usize {
    const STEP: usize = MAX_ATTACHMENTS / 2;
    const BYTE_STEP: u64 = MAX_MESSAGE_BYTES / 2;
    let by_count = sizes.len().saturating_sub(MAX_ATTACHMENTS).div_ceil(STEP) * STEP;
    let excess = sizes
        .iter()
        .fold(0, |sum: u64, size| sum.saturating_add(*size));
    let excess = excess.saturating_sub(MAX_MESSAGE_BYTES);
    let left_out = excess.div_ceil(BYTE_STEP).saturating_mul(BYTE_STEP);
    let (mut by_bytes, mut bytes) = (0, 0);
    while bytes < left_out && by_bytes < sizes.len() {
        bytes = sizes[by_bytes].saturating_add(bytes);
        by_bytes += 1;
    }
    by_count.max(by_bytes).min(sizes.len())
}

fn contents_mut(message: &mut Message) -> Vec<&mut Content> {
    match message {
        Message::User(content) => vec![content],
        Message::Assistant { .. } => Vec::new(),
        Message::Results(results) => {
            let contents = results.iter_mut().map(|result| &mut result.content);
            contents.collect()
        }
    }
}

/// Returns the text before an attachment, so that a model knows its name.
fn caption(attachment: &Attachment) -> String {
    match attachment.kind() {
        AttachmentKind::Image => format!("[image {}]", attachment.name),
        AttachmentKind::Pdf | AttachmentKind::Other => format!("[file {}]", attachment.name),
    }
}

/// Returns the text in place of an attachment that is not sent.
fn describe(attachment: &Attachment, why: &str) -> String {
    let placeholder = attachment.placeholder();
    format!("{}; {why}]", placeholder.trim_end_matches(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B110, B40
    #[test]
    fn old_attachments_are_left_out_in_steps() {
        let mebibyte = 1024 * 1024;
        assert_eq!(first_sent(&[]), 0);
        assert_eq!(first_sent(&[1; MAX_ATTACHMENTS]), 0);
        assert_eq!(first_sent(&[1; MAX_ATTACHMENTS + 1]), 10);
        assert_eq!(first_sent(&[1; MAX_ATTACHMENTS + 10]), 10);
        assert_eq!(first_sent(&[9 * mebibyte; 2]), 0);
        let moves = (2..40).map(|count| first_sent(&vec![3 * mebibyte; count]));
        let moves: Vec<usize> = moves.collect();
        for (count, first) in (2..40).zip(&moves) {
            assert!((count - first) as u64 * 3 * mebibyte <= MAX_MESSAGE_BYTES);
        }
        let changes = moves.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 14, "{moves:?}");
        assert_eq!(first_sent(&[u64::MAX / 4; 3]), 3, "a size that is no size");
    }
}
