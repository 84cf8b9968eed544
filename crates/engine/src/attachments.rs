//! Attachments in requests to models: which are sent, and loading their bytes.

use std::collections::HashMap;
use std::sync::Arc;

use lango_domain::content::{Attachment, BlobData, BlobId, MAX_ATTACHMENTS};
use lango_domain::model::{Message, ModelRequest};
use lango_domain::session::SessionKeyRef;
use lango_domain::{Content, ReadableKinds};

use crate::driver::Driver;
use crate::turn_error::TurnError;

/// Most bytes of the attachments in one request. Providers refuse larger requests.
const MAX_REQUEST_ATTACHMENT_BYTES: u64 = 20 * 1024 * 1024;

/// Returns content with a short text in place of attachments that a model cannot read.
pub(crate) fn replace_unreadable(content: &Content, readable: ReadableKinds) -> Content {
    content.replace_attachments(|attachment| {
        let is_readable = readable.contains(attachment.kind());
        (!is_readable).then(|| describe(attachment, "this model cannot read it"))
    })
}

impl Driver {
    /// Returns the request with the bytes of its attachments. Older attachments than fit into one
    /// request, and lost ones, become a short text.
    pub(crate) async fn load_attachments(
        &self,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, TurnError> {
        let mut budget = AttachmentBudget::default();
        // The newest attachments are the ones that matter most.
        for message in request.messages.iter_mut().rev() {
            for content in contents_mut(message).into_iter().rev() {
                if !content.attachments.is_empty() {
                    *content = self.load_content(content, &mut budget).await?;
                }
            }
        }
        Ok(request)
    }

    async fn load_content(
        &self,
        content: &Content,
        budget: &mut AttachmentBudget,
    ) -> Result<Content, TurnError> {
        let mut loaded: HashMap<BlobId, Option<BlobData>> = HashMap::new();
        for attachment in content.attachments.iter().rev() {
            if !loaded.contains_key(&attachment.blob) {
                let data = match budget.take(attachment) {
                    true => Some(self.load_data(attachment).await?),
                    false => None,
                };
                loaded.insert(attachment.blob.clone(), data);
            }
        }
        let bytes_of = |attachment: &Attachment| loaded.get(&attachment.blob).cloned().flatten();
        let mut content = content.replace_attachments(|attachment| match bytes_of(attachment) {
            Some(data) if data.bytes().is_some() => None,
            Some(_) => Some(describe(attachment, "its content is lost")),
            None => Some(describe(
                attachment,
                "left out, as newer ones fill the request",
            )),
        });
        for attachment in &mut content.attachments {
            attachment.data = bytes_of(attachment).unwrap_or_default();
        }
        Ok(content)
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
        Ok(blob.map_or_else(BlobData::default, |bytes: Arc<[u8]>| {
            BlobData::loaded(bytes)
        }))
    }
}

/// The attachments that one request may still hold.
struct AttachmentBudget {
    count: usize,
    bytes: u64,
}

impl Default for AttachmentBudget {
    fn default() -> Self {
        Self {
            count: MAX_ATTACHMENTS,
            bytes: MAX_REQUEST_ATTACHMENT_BYTES,
        }
    }
}

impl AttachmentBudget {
    /// Takes room for an attachment. Returns false, and takes nothing more, when it does not fit.
    fn take(&mut self, attachment: &Attachment) -> bool {
        let fits = self.count > 0 && attachment.size <= self.bytes;
        self.count = if fits { self.count - 1 } else { 0 };
        self.bytes -= if fits { attachment.size } else { 0 };
        fits
    }
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

/// Returns the text in place of an attachment that is not sent.
fn describe(attachment: &Attachment, why: &str) -> String {
    let placeholder = attachment.placeholder();
    format!("{}; {why}]", placeholder.trim_end_matches(']'))
}
