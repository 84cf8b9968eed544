//! A connection whose other end has to take what is sent to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Breaks off when nothing could be written for too long; reading has limits of its own.
pub(crate) struct WriteTimeout<T> {
    stream: T,
    timeout: Duration,
    /// Runs while something waits to be written.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<T> WriteTimeout<T> {
    pub fn new(stream: T, patience: Duration) -> Self {
        Self {
            stream,
            timeout: patience,
            deadline: None,
        }
    }

    /// What became of a try to write; one that waits for too long has failed.
    fn check_deadline<R>(
        &mut self,
        tried: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if tried.is_ready() {
            self.deadline = None;
            return tried;
        }
        let patience = self.timeout;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(deadline.as_mut().poll(context));
        deadline.as_mut().reset(Instant::now() + patience);
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the other end takes nothing",
        )))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_deadline(tried, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_deadline(tried, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_nothing_is_cut_off_and_whoever_is_slow_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = WriteTimeout::new(near, Duration::from_secs(30));
        let slow = tokio::spawn(async move {
            let mut taken = 0;
            while taken < 64 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                taken += far.read(&mut [0; 4]).await.unwrap();
            }
            far
        });
        near.write_all(&[1; 64]).await.unwrap();
        let far = slow.await.unwrap();
        near.write_all(&[1; 8]).await.unwrap();
        let began = Instant::now();
        let error = near.write_all(&[1; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 30);
        drop(far);
    }
}
