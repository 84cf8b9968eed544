//! Times of the clock: `9`, `9:30`, `9.30`, `9h30`, `17h`, `9pm`.

use jiff::civil::Time;

/// A time written as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenTime {
    pub hour: i8,
    pub minute: i8,
    /// False for a plain number, which may be something else.
    pub is_explicit: bool,
    /// True for `9` and `9:30`, but not for `09:30`, `9h` and `9pm`.
    pub is_half_day: bool,
    pub half: Option<DayHalf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayHalf {
    Am,
    Pm,
}

impl WrittenTime {
    pub fn parse(word: &str) -> Option<Self> {
        let dotless = word.replace('.', "");
        let (word, half) = if let Some(word) = dotless.strip_suffix("am") {
            (word, Some(DayHalf::Am))
        } else if let Some(word) = dotless.strip_suffix("pm") {
            (word, Some(DayHalf::Pm))
        } else {
            (word, None)
        };
        let (hour, minute, is_explicit) = match word.split_once([':', '.', 'h']) {
            Some((hour, "")) if word.ends_with('h') => (hour, "0", true),
            Some((hour, minute)) if minute.len() == 2 => (hour, minute, true),
            Some(_) => return None,
            None => (word, "0", half.is_some()),
        };
        let number = |text: &str| match text.len() {
            1 | 2 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<i8>().ok(),
            _ => None,
        };
        let is_half_day = half.is_none() && !hour.starts_with('0') && !word.contains('h');
        let (hour, minute) = (number(hour)?, number(minute)?);
        (hour <= 23 && minute <= 59).then_some(Self {
            hour,
            minute,
            is_explicit,
            is_half_day: is_half_day && (1..=12).contains(&hour),
            half,
        })
    }

    /// Returns the time of day; `None` for times such as `17 am`.
    pub fn resolve(self, half: Option<DayHalf>) -> Option<Time> {
        let hour = match (self.half.or(half), self.hour) {
            (None, hour) => hour,
            (Some(DayHalf::Am), 12) => 0,
            (Some(DayHalf::Am), hour) => (hour < 12).then_some(hour)?,
            (Some(DayHalf::Pm), hour @ 1..=11) => hour + 12,
            (Some(DayHalf::Pm), hour @ 12..) => hour,
            (Some(DayHalf::Pm), _) => return None,
        };
        Time::new(hour, self.minute, 0, 0).ok()
    }
}
