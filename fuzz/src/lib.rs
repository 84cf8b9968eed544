//! Feeds bytes through the SSE parser into a provider's decoder. The first byte sets the chunk
//! size.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::TeamMode;
use lango_domain::model::ModelRequest;
use lango_domain::reply_limits::MAX_EVENT_BYTES;
use lango_models::{Dialect, ModelEndpoint, SseParser};

pub fn decode(dialect: Dialect, data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    let request = ModelRequest {
        agent: TeamMode::Single.root_name(),
        system: "".into(),
        tools: Arc::new([]),
        messages: Vec::new(),
    };
    let endpoint = ModelEndpoint {
        provider: "x".into(),
        base_url: String::new(),
        key: None,
        model: "m".into(),
        headers: BTreeMap::new(),
        max_output_tokens: 8_192,
    };
    let mut decoder = dialect.decoder(&request, &endpoint);
    let (mut parser, mut events, mut fragments) =
        (SseParser::new(MAX_EVENT_BYTES), Vec::new(), Vec::new());
    for chunk in bytes.chunks(usize::from(*size).max(1)) {
        if parser.feed(chunk, &mut events).is_err() {
            return;
        }
    }
    if parser.finish(&mut events).is_err() {
        return;
    }
    for event in &events {
        if decoder.decode_event(event, &mut fragments).is_err() {
            return;
        }
    }
    let _ = decoder.end(&mut fragments);
}
