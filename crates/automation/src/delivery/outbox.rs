//! The loop of the outbox: takes due deliveries, sends them, and records how each attempt ended.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{
    AutomationStore, ClaimDeliveries, Delivery, DeliveryEnd, LeaseNumber,
};
use lango_domain::{Clock, StoreError};
use lango_text::sanitize::truncated_line;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::channels::{DeliveryChannels, SendError, SentMessage};
use super::inbox::failure_entry;
use super::message::OutgoingMessage;
use super::target::DeliveryTarget;

/// A delivery is tried at most this often.
pub const MAX_ATTEMPTS: u32 = 6;
/// Delays after each attempt but the last, in seconds.
const RETRY_DELAYS: [i64; MAX_ATTEMPTS as usize - 1] = [30, 60, 5 * 60, 15 * 60, 60 * 60];
/// Number of deliveries that are sent at the same time.
const MAX_SENDING: usize = 8;
/// A delivery of a process that ended during an attempt is tried again after this time. Longer than
/// any attempt takes.
const ATTEMPT_LEASE: SignedDuration = SignedDuration::from_mins(5);
/// The longest wait between two looks into the outbox. The clock may jump, and a time that was waited
/// for may have passed.
const MAX_WAIT: Duration = Duration::from_secs(30);
const MAX_ERROR_CHARS: usize = 500;

/// Sends the deliveries of a store. Only the process that holds the scheduler's lease may run it.
pub struct DeliveryOutbox {
    store: Arc<dyn AutomationStore>,
    channels: DeliveryChannels,
    clock: Clock,
    wake: Notify,
}

/// The number of attempts of a pass, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxPass {
    pub delivered: usize,
    /// To be tried again.
    pub postponed: usize,
    pub failed: usize,
}

/// Returns the delay after an attempt that failed, or `None` if it was the last one.
pub fn retry_delay(attempts: u32) -> Option<SignedDuration> {
    let index = attempts.max(1) as usize - 1;
    RETRY_DELAYS
        .get(index)
        .map(|seconds| SignedDuration::from_secs(*seconds))
}

impl DeliveryOutbox {
    pub fn new(store: Arc<dyn AutomationStore>, channels: DeliveryChannels, clock: Clock) -> Self {
        Self {
            store,
            channels,
            clock,
            wake: Notify::new(),
        }
    }

    pub fn channels(&self) -> &DeliveryChannels {
        &self.channels
    }

    /// Makes a waiting [`Self::run`] look into the outbox now. Call it after a delivery was enqueued.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Sends deliveries when they are due, until `stop`. Attempts that are under way then are finished.
    /// Returns an error if the lease is lost or the store fails.
    pub async fn run(
        &self,
        lease: LeaseNumber,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let mut sending = FuturesUnordered::new();
        while !stop.is_cancelled() {
            let free = MAX_SENDING - sending.len();
            for delivery in self.claim(lease, free).await? {
                sending.push(self.attempt(lease, delivery));
            }
            let wait = match sending.len() {
                MAX_SENDING => MAX_WAIT,
                _ => self.time_to_next().await?,
            };
            tokio::select! {
                Some(end) = sending.next() => drop(end?),
                () = tokio::time::sleep(wait) => {}
                () = self.wake.notified() => {}
                () = stop.cancelled() => {}
            }
        }
        while let Some(end) = sending.next().await {
            end?;
        }
        Ok(())
    }

    /// Sends the deliveries that are due now, and waits for all of them.
    pub async fn deliver_due(&self, lease: LeaseNumber) -> Result<OutboxPass, StoreError> {
        let mut pass = OutboxPass::default();
        loop {
            let claimed = self.claim(lease, MAX_SENDING).await?;
            if claimed.is_empty() {
                return Ok(pass);
            }
            let mut sending: FuturesUnordered<_> = claimed
                .into_iter()
                .map(|delivery| self.attempt(lease, delivery))
                .collect();
            while let Some(end) = sending.next().await {
                match end? {
                    AttemptEnd::Delivered => pass.delivered += 1,
                    AttemptEnd::Postponed => pass.postponed += 1,
                    AttemptEnd::Failed => pass.failed += 1,
                }
            }
        }
    }

    async fn claim(&self, lease: LeaseNumber, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let at = (self.clock)();
        let claim = ClaimDeliveries {
            at,
            retry_at: later(at, ATTEMPT_LEASE),
            limit,
        };
        self.store.claim_deliveries(lease, claim).await
    }

    async fn time_to_next(&self) -> Result<Duration, StoreError> {
        let Some(next) = self.store.agenda().await?.next_delivery else {
            return Ok(MAX_WAIT);
        };
        let wait = next.duration_since((self.clock)());
        // The store is not asked in a tight loop, even if a row cannot be claimed.
        Ok(Duration::try_from(wait)
            .unwrap_or_default()
            .clamp(Duration::from_millis(100), MAX_WAIT))
    }

    async fn attempt(
        &self,
        lease: LeaseNumber,
        delivery: Delivery,
    ) -> Result<AttemptEnd, StoreError> {
        let result = self.send(&delivery).await;
        let message = OutgoingMessage {
            delivery: &delivery,
            sent_at: (self.clock)(),
        };
        let (outcome, end) = decide_end(message, result);
        if let DeliveryEnd::Retry { error, .. } | DeliveryEnd::Failed { error, .. } = &end {
            let target = target_summary(&delivery.target);
            tracing::warn!(delivery = %delivery.id, target, error, "a delivery did not succeed");
        }
        // False means that the run was deleted in the meantime: then there is nothing to record.
        self.store.finish_attempt(lease, delivery.id, end).await?;
        Ok(outcome)
    }

    async fn send(&self, delivery: &Delivery) -> Result<SentMessage, SendError> {
        if delivery.attempts > MAX_ATTEMPTS {
            return Err(SendError::Permanent(format!(
                "given up after {MAX_ATTEMPTS} attempts; Lango was stopped during the last one"
            )));
        }
        let target: DeliveryTarget = delivery
            .target
            .parse()
            .map_err(|error: super::InvalidTarget| SendError::Permanent(error.to_string()))?;
        let message = OutgoingMessage {
            delivery,
            sent_at: (self.clock)(),
        };
        let workspace = delivery.message.workspace.as_deref();
        let folder = self.channels.folder(&target, workspace)?;
        let sender = self.channels.sender_in(&target, folder.as_ref())?;
        sender.send(message).await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptEnd {
    Delivered,
    Postponed,
    Failed,
}

/// Decides what follows from the result of an attempt.
fn decide_end(
    message: OutgoingMessage<'_>,
    result: Result<SentMessage, SendError>,
) -> (AttemptEnd, DeliveryEnd) {
    let error = match result {
        Ok(sent) => {
            let end = DeliveryEnd::Delivered { inbox: sent.inbox };
            return (AttemptEnd::Delivered, end);
        }
        Err(error) => error,
    };
    let delay = match &error {
        SendError::Temporary(_) => retry_delay(message.delivery.attempts),
        SendError::Permanent(_) => None,
    };
    let error = truncated_line(&error.to_string(), MAX_ERROR_CHARS);
    match delay {
        Some(delay) => {
            let at = later(message.sent_at, delay);
            (AttemptEnd::Postponed, DeliveryEnd::Retry { at, error })
        }
        None => {
            let target = target_summary(&message.delivery.target);
            let inbox = Some(failure_entry(message, &target, &error));
            (AttemptEnd::Failed, DeliveryEnd::Failed { error, inbox })
        }
    }
}

/// Names a target without what may be a secret in it.
fn target_summary(target: &str) -> String {
    match target.parse::<DeliveryTarget>() {
        Ok(target) => target.summary(),
        Err(_) => truncated_line(target.split(':').next().unwrap_or_default(), 40),
    }
}

fn later(at: Timestamp, delay: SignedDuration) -> Timestamp {
    at.checked_add(delay).unwrap_or(Timestamp::MAX)
}
