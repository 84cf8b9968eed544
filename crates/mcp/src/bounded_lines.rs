//! A reader that ends when a line is too long. One message of the protocol is one line.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Most bytes of one message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

pub(crate) struct BoundedLines<R> {
    reader: R,
    line_bytes: usize,
    max: usize,
    on_excess: Box<dyn Fn() + Send>,
}

impl<R> BoundedLines<R> {
    /// `on_excess` is called before the reader fails.
    pub fn new(reader: R, max: usize, on_excess: impl Fn() + Send + 'static) -> Self {
        Self {
            reader,
            line_bytes: 0,
            max,
            on_excess: Box::new(on_excess),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.reader).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &result {
            let read = &buffer.filled()[before..];
            self.line_bytes = match read.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => read.len() - at - 1,
                None => self.line_bytes + read.len(),
            };
            if self.line_bytes > self.max {
                // A reader that fails must not leave bytes behind.
                buffer.set_filled(before);
                (self.on_excess)();
                return Poll::Ready(Err(io::Error::other("the message is too long")));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_long_line_ends_the_reader() {
        let text = format!("{}\n{}\n", "a".repeat(90), "b".repeat(90));
        let mut read = String::new();
        BoundedLines::new(text.as_bytes(), 100, || {})
            .read_to_string(&mut read)
            .await
            .unwrap();
        assert_eq!(read, text);
        let (is_reported, long) = (Arc::new(AtomicBool::new(false)), "c".repeat(200));
        let report = Arc::clone(&is_reported);
        let mut reader = BoundedLines::new(long.as_bytes(), 100, move || {
            report.store(true, Ordering::Relaxed);
        });
        assert!(reader.read_to_string(&mut read).await.is_err());
        assert!(is_reported.load(Ordering::Relaxed));
    }
}
