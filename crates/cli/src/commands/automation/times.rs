//! Times for people: relative to now, and absolute in the user's zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lango_app::capability::automation::time_text::{absolute_time, describe_time};

/// Formats times for one moment and zone.
#[derive(Clone, Debug)]
pub struct TimeFormat {
    pub now: Timestamp,
    pub zone: TimeZone,
}

impl TimeFormat {
    /// Returns the format for now, in the zone of this machine.
    pub fn local() -> Self {
        Self {
            now: Timestamp::now(),
            zone: TimeZone::system(),
        }
    }

    /// Returns both forms, as in `today, Wed 18 Nov 2026 09:00 Europe/Berlin, in 7 h`.
    pub fn both(&self, at: Timestamp) -> String {
        describe_time(&at.to_zoned(self.zone.clone()), self.now)
    }

    pub fn absolute(&self, at: Timestamp) -> String {
        absolute_time(&at.to_zoned(self.zone.clone()))
    }
}
