//! Turns the result of a call into content for a model.

use lango_domain::{Attachment, Content};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Most characters of text; the engine applies the limit of the turn to what is left.
const MAX_TEXT_CHARS: usize = 200_000;
const MAX_ATTACHMENTS: usize = 16;

/// Returns the content of a result.
pub(crate) fn to_content(result: CallToolResult) -> Content {
    let mut content = Content::default();
    let structured = result.structured_content;
    for block in result.content {
        add_block(&mut content, block);
    }
    if let Some(structured) = structured.filter(|_| content.is_empty()) {
        content.push_paragraph(&truncated(structured.to_string()));
    }
    if content.is_empty() {
        content.push_paragraph("(the tool returned nothing)");
    }
    content
}

fn add_block(content: &mut Content, block: ContentBlock) {
    match block {
        ContentBlock::Text(text) => add_text(content, text.text),
        ContentBlock::Image(image) => attach(content, &image.data, "image", &image.mime_type),
        ContentBlock::Audio(audio) => attach(content, &audio.data, "audio", &audio.mime_type),
        ContentBlock::Resource(resource) => add_resource(content, resource.resource),
        ContentBlock::ResourceLink(link) => {
            add_text(content, format!("[resource {}: {}]", link.name, link.uri));
        }
        _ => add_text(
            content,
            "[not shown: an unknown kind of content]".to_owned(),
        ),
    }
}

pub(crate) fn add_resource(content: &mut Content, resource: ResourceContents) {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            add_text(content, format!("[resource {uri}]\n{text}"));
        }
        ResourceContents::BlobResourceContents {
            uri,
            blob,
            mime_type,
            ..
        } => {
            let name = uri.rsplit('/').next().unwrap_or("resource").to_owned();
            let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
            attach(content, &blob, &name, media_type);
        }
        _ => add_text(
            content,
            "[not shown: an unknown kind of resource]".to_owned(),
        ),
    }
}

fn add_text(content: &mut Content, text: String) {
    let left = MAX_TEXT_CHARS.saturating_sub(content.text.chars().count());
    if left == 0 {
        return;
    }
    let text = match text.char_indices().nth(left) {
        Some((end, _)) => format!("{}\n[the rest was left out]", &text[..end]),
        None => text,
    };
    content.push_paragraph(&text);
}

fn truncated(text: String) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// Attaches bytes, or says why they are missing.
fn attach(content: &mut Content, base64: &str, name: &str, media_type: &str) {
    if content.attachments_in_order().len() >= MAX_ATTACHMENTS {
        return;
    }
    match Attachment::from_base64(base64, name, Some(media_type)) {
        Ok(attachment) => content.attach(attachment),
        Err(error) => add_text(content, format!("[not shown: {error}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

    fn result(content: Vec<ContentBlock>) -> CallToolResult {
        CallToolResult::success(content)
    }

    #[test]
    fn blocks_become_text_and_attachments() {
        let content = to_content(result(vec![
            ContentBlock::text("one"),
            ContentBlock::image(PIXEL, "image/png"),
            ContentBlock::image("not base64!", "image/png"),
            ContentBlock::embedded_text("file:///a.txt", "two"),
        ]));
        assert!(content.text.contains("one") && content.text.contains("file:///a.txt"));
        assert!(content.text.contains("not shown"), "{}", content.text);
        assert_eq!(content.attachments_in_order().len(), 1);
    }

    #[test]
    fn long_text_is_limited_and_nothing_is_said() {
        let content = to_content(result(vec![
            ContentBlock::text("x".repeat(300_000)),
            ContentBlock::text("y"),
        ]));
        assert!(content.text.chars().count() < MAX_TEXT_CHARS + 100);
        assert!(content.text.contains("left out"));
        assert!(!to_content(result(Vec::new())).is_empty());
    }
}
