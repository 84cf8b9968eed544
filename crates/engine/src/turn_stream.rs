//! The stream of a running turn's updates, and the signals that stop a turn.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use lango_domain::event::Update;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// The updates of one turn. The last one is `turn_done` or `turn_failed`, or [`Update::StoreFailed`]
/// if events cannot be stored. A turn that is cancelled while it waits for an earlier one has none.
pub struct TurnStream {
    updates: UnboundedReceiver<Update>,
    /// Resolves when the turn has ended, even if an aborted task still holds the sender of `updates`.
    finished: Pin<Box<WaitForCancellationFutureOwned>>,
    signals: TurnSignals,
    _cancel_on_drop: DropGuard,
}

/// Signals that stop a turn.
#[derive(Clone)]
pub(crate) struct TurnSignals {
    pub cancel: CancellationToken,
    /// Cancelled together with `cancel` if the turn is to be resumed later.
    pub suspend: CancellationToken,
}

impl TurnStream {
    /// Runs the turn on its own task. Must be called within a tokio runtime.
    pub(crate) fn start<Turn>(
        turn: impl FnOnce(TurnSignals, UnboundedSender<Update>) -> Turn,
    ) -> Self
    where
        Turn: Future<Output = ()> + Send + 'static,
    {
        let (sender, updates) = unbounded_channel();
        let signals = TurnSignals {
            cancel: CancellationToken::new(),
            suspend: CancellationToken::new(),
        };
        let finished = CancellationToken::new();
        let wait_finished = Box::pin(finished.clone().cancelled_owned());
        let turn = turn(signals.clone(), sender);
        tokio::spawn(async move {
            let _finished = finished.drop_guard();
            turn.await;
        });
        Self {
            updates,
            finished: wait_finished,
            _cancel_on_drop: signals.cancel.clone().drop_guard(),
            signals,
        }
    }

    /// Cancels the turn. Its events so far stay in the log, and the session can be used as before.
    pub fn cancel(&self) {
        self.signals.cancel.cancel();
    }

    /// Suspends the turn: it stops without an end in the log, and [`crate::Runner::resume`] resumes it.
    pub fn suspend(&self) {
        self.signals.suspend.cancel();
        self.signals.cancel.cancel();
    }
}

impl Stream for TurnStream {
    type Item = Update;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        if let Poll::Ready(update) = self.updates.poll_recv(context) {
            return Poll::Ready(update);
        }
        // An update may have arrived in between.
        self.finished
            .as_mut()
            .poll(context)
            .map(|()| self.updates.try_recv().ok())
    }
}
