//! Text that is shown while it is produced: replies of models, and output of calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lango_domain::ToolOutputSink;
use lango_domain::secret_reference::{RedactedStream, SecretRedactor};

use super::TurnSecrets;

/// Redacts the text of a reply while it is shown. Costs nothing without secrets.
pub(crate) struct ShownText(Option<RedactedStream>);

impl ShownText {
    pub fn new(secrets: &TurnSecrets) -> Self {
        let redactor = secrets.redactor();
        Self((!redactor.is_empty()).then(|| RedactedStream::new(redactor)))
    }

    /// Returns the text that may be shown now.
    pub fn push(&mut self, text: String) -> Option<String> {
        let text = match &mut self.0 {
            Some(stream) => stream.push(&text),
            None => text,
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the rest of the text.
    pub fn finish(&mut self) -> Option<String> {
        let rest = self.0.as_mut().map(RedactedStream::finish);
        rest.filter(|text| !text.is_empty())
    }
}

/// The live output of a call, without the values of secrets.
pub(crate) struct LiveOutput {
    shown: ToolOutputSink,
    stream: Option<Arc<Mutex<RedactedStream>>>,
}

impl LiveOutput {
    pub fn new(shown: ToolOutputSink, redactor: &SecretRedactor) -> Self {
        let is_needed = shown.is_connected() && !redactor.is_empty();
        let stream = is_needed.then(|| RedactedStream::new(redactor.clone()));
        Self {
            shown,
            stream: stream.map(|stream| Arc::new(Mutex::new(stream))),
        }
    }

    /// Returns the sink for the tool.
    pub fn sink(&self) -> ToolOutputSink {
        let Some(stream) = self.stream.clone() else {
            return self.shown.clone();
        };
        let shown = self.shown.clone();
        ToolOutputSink::new(move |text| {
            let text = lock(&stream).push(text);
            if !text.is_empty() {
                shown.send(&text);
            }
        })
    }

    /// Sends the rest of the output.
    pub fn finish(&self) {
        let rest = self.stream.as_ref().map(|stream| lock(stream).finish());
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            self.shown.send(&rest);
        }
    }
}

fn lock(stream: &Mutex<RedactedStream>) -> MutexGuard<'_, RedactedStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
