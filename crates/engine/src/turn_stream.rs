//! The updates of a running turn, and how a turn is ended from outside.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use lango_domain::event::Update;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// The updates of one turn. The last is `turn_done` or `turn_failed`, or [`Update::Broken`] when nothing can be stored;
/// a turn that was cancelled while it waited for another one has none.
pub struct TurnStream {
    updates: UnboundedReceiver<Update>,
    /// The turn has ended, though something that it gave up on may still hold the other end of `updates`.
    finished: Pin<Box<WaitForCancellationFutureOwned>>,
    signals: TurnSignals,
    _cancel_on_drop: DropGuard,
}

/// How a turn is ended from outside.
#[derive(Clone)]
pub(crate) struct TurnSignals {
    pub cancel: CancellationToken,
    /// Cancelled together with the other where the turn is to be gone on with.
    pub suspend: CancellationToken,
}

impl TurnStream {
    /// Runs the turn on a task of its own. Must be called within a tokio runtime.
    pub(crate) fn start<Turn>(
        turn: impl FnOnce(TurnSignals, UnboundedSender<Update>) -> Turn,
    ) -> Self
    where
        Turn: Future<Output = ()> + Send + 'static,
    {
        let (sender, updates) = unbounded_channel();
        let end = TurnSignals {
            cancel: CancellationToken::new(),
            suspend: CancellationToken::new(),
        };
        let over = CancellationToken::new();
        let is_over = Box::pin(over.clone().cancelled_owned());
        let turn = turn(end.clone(), sender);
        tokio::spawn(async move {
            let _over = over.drop_guard();
            turn.await;
        });
        Self {
            updates,
            finished: is_over,
            _cancel_on_drop: end.cancel.clone().drop_guard(),
            signals: end,
        }
    }

    /// Ends the turn; what was done so far stays, and the session can be used as before.
    pub fn cancel(&self) {
        self.signals.cancel.cancel();
    }

    /// Stops the turn without ending it: the log keeps what was done, and [`crate::Runner::resume`] goes on from there.
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
        // What came in between is still given.
        self.finished
            .as_mut()
            .poll(context)
            .map(|()| self.updates.try_recv().ok())
    }
}
