//! The output of a call while it runs.

use std::fmt;
use std::sync::Arc;

/// Receives the output of a call while it runs. This output is not part of the log.
#[derive(Clone, Default)]
pub struct ToolOutputSink(Option<OutputCallback>);

type OutputCallback = Arc<dyn Fn(&str) + Send + Sync>;

impl ToolOutputSink {
    pub fn new(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    pub fn disconnected() -> Self {
        Self(None)
    }

    pub fn is_connected(&self) -> bool {
        self.0.is_some()
    }

    pub fn send(&self, text: &str) {
        if let Some(callback) = &self.0 {
            callback(text);
        }
    }
}

impl fmt::Debug for ToolOutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "ToolOutputSink(connected)"
        } else {
            "ToolOutputSink(disconnected)"
        })
    }
}
