//! Looks for words of time that were not read. A time that is understood only in part is not guessed.

use std::ops::Range;

use super::reader::{FoundTime, PhraseReader};
use super::written_time::WrittenTime;

/// The shortest name of a month that is a month without a number next to it.
const MIN_MONTH_CHARS: usize = 5;

/// The place of what was read in its sentence.
pub(super) struct Reading<'a> {
    pub time: &'a FoundTime,
    /// All words that were read, in order.
    pub used: &'a [Range<usize>],
    /// The words of "remind me".
    pub frame: Option<&'a Range<usize>>,
}

/// Words that were not understood.
pub(super) enum Leftover {
    Unread(Range<usize>),
    /// May belong to the time that was read.
    Apart(Range<usize>),
}

impl PhraseReader<'_> {
    /// Finds words of time besides those that were read.
    pub(super) fn leftover(&self, reading: &Reading<'_>) -> Option<Leftover> {
        if let Some(range) = self.unread_place(reading) {
            return Some(Leftover::Unread(range));
        }
        if let Some(range) = self.touching_number(reading) {
            return Some(Leftover::Unread(range));
        }
        let is_delimited = reading.frame.is_some() && self.starts_text(reading.time.range.end);
        let is_complete = reading.time.is_complete() || reading.used.len() > 1;
        for chunk in self.time_words(reading.used) {
            if self.touches(&chunk, reading) {
                return Some(Leftover::Unread(self.with_joints(chunk, reading.used)));
            }
            if is_complete {
                continue;
            }
            // What comes before the time is no text after "to".
            if !is_delimited || chunk.start < reading.time.range.start {
                return Some(Leftover::Unread(self.with_joints(chunk, reading.used)));
            }
            if chunk.end == self.tokens.len() {
                return Some(Leftover::Apart(self.with_joints(chunk, reading.used)));
            }
        }
        None
    }

    /// Returns the words of time of a sentence in which no time was read.
    pub(super) fn first_time_words(&self) -> Option<Range<usize>> {
        let chunk = self.time_words(&[]).into_iter().next()?;
        Some(self.with_joints(chunk, &[]))
    }

    /// Returns a place or a time between "remind me" and the time, or after it: "on my birthday".
    fn unread_place(&self, reading: &Reading<'_>) -> Option<Range<usize>> {
        let words = self.words;
        let time = &reading.time.range;
        let is_place =
            |at: usize| self.skip(at, words.prepositions).is_some() && !self.starts_text(at);
        let is_free = |at: usize| {
            let token = self.tokens.get(at);
            token.is_some_and(|token| !token.is_quoted)
                && !reading.used.iter().any(|used| used.contains(&at))
        };
        let Some(frame) = reading.frame else {
            let start = self.skip_optional(0, words.polite);
            let is_before = start < time.start && reading.time.is_clock_only();
            return (is_before && is_place(start)).then_some(start..time.start);
        };
        let after_frame = self.skip_optional(frame.end, words.polite);
        if after_frame < time.start && is_free(after_frame) && is_place(after_frame) {
            return Some(after_frame..time.start);
        }
        let after_time = self.skip_optional(time.end, words.polite);
        if !is_free(after_time) || !is_place(after_time) || after_time == frame.start {
            return None;
        }
        let is_end = |at: &usize| !is_free(*at) || self.starts_text(*at);
        let end = (after_time..self.tokens.len()).find(is_end);
        Some(after_time..end.unwrap_or(self.tokens.len()))
    }

    /// Returns a number that is joined to the time: "at 9 and 12".
    fn touching_number(&self, reading: &Reading<'_>) -> Option<Range<usize>> {
        let has_digit = |at: &usize| {
            let token = self.tokens.get(*at);
            token.is_some_and(|token| {
                !token.is_quoted && token.word.contains(|c: char| c.is_ascii_digit())
            })
        };
        let after = reading.time.range.end;
        if !(reading.frame.is_some() && self.starts_text(after)) {
            let place = (after..self.tokens.len()).find(|at| !self.is_joint(*at))?;
            let is_used = reading.used.iter().any(|used| used.contains(&place));
            if has_digit(&place) && !is_used {
                return Some(after..place + 1);
            }
        }
        let before = (0..reading.time.range.start).rev();
        let place = before.into_iter().find(|at| !self.is_joint(*at))?;
        let is_used = reading.used.iter().any(|used| used.contains(&place));
        (has_digit(&place) && !is_used && self.is_joint_or_edge(place + 1, reading))
            .then_some(place..reading.time.range.start)
    }

    fn is_joint_or_edge(&self, at: usize, reading: &Reading<'_>) -> bool {
        at == reading.time.range.start || self.is_joint(at)
    }

    /// Returns the ranges of words outside `used` that look like times.
    fn time_words(&self, used: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut chunks: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if let Some(range) = used.iter().find(|range| range.contains(&at)) {
                at = range.end;
                continue;
            }
            let limit = used.iter().map(|range| range.start);
            let limit = limit.filter(|start| *start > at).min();
            let Some(end) = self.time_words_at(at) else {
                at += 1;
                continue;
            };
            let end = end.min(limit.unwrap_or(usize::MAX));
            match chunks.last_mut() {
                Some(last) if last.end == at => last.end = end,
                _ => chunks.push(at..end),
            }
            at = end;
        }
        chunks
    }

    /// Returns the end of a word of time at a place.
    fn time_words_at(&self, at: usize) -> Option<usize> {
        let words = self.words;
        let token = self.tokens.get(at).filter(|token| !token.is_quoted)?;
        if let Some((_, after)) = self.phrase(at) {
            return Some(after);
        }
        let entries = [
            words.unread,
            words.past_days,
            words.today,
            words.weekly,
            words.monthly,
            words.yearly,
            words.all_workdays,
            words.next_week,
            words.noon,
            words.midnight,
        ];
        if let Some(after) = entries.iter().find_map(|entries| self.skip(at, entries)) {
            return Some(after);
        }
        if let Some(after) = self.month_word(at) {
            return Some(after);
        }
        let is_clock = WrittenTime::parse(&token.word).is_some_and(|time| time.is_explicit);
        let is_zone = self.is_zone_word(at);
        if is_clock || is_zone || self.is_ordinal_number(at) {
            return Some(at + 1);
        }
        self.counted_unit(at)
    }

    /// "2 hours", "every week", "first Monday", "in zweiundzwanzig Minuten"
    fn counted_unit(&self, at: usize) -> Option<usize> {
        let words = self.words;
        if let Some((count, place)) = self.number(at)
            && let Some((_, after)) = self.unit(place)
            && count > 1
        {
            return Some(after);
        }
        if let Some((_, place)) = self.ordinal(at)
            && let Some((_, after)) = self.weekday(place, &words.weekdays)
        {
            return Some(after);
        }
        if let Some(place) = self.skip(at, words.every) {
            let unit = self.unit(place).or_else(|| self.unit(place + 1));
            let weekday = self.weekday(place + 1, &words.weekdays);
            let after = unit.map(|(_, after)| after);
            return after.or(weekday.map(|(_, after)| after));
        }
        let place = self.skip(at, words.within)?;
        let (_, after) = self.unit(place + 1)?;
        Some(after)
    }

    fn month_word(&self, at: usize) -> Option<usize> {
        let after = self
            .words
            .month_names
            .iter()
            .find_map(|names| self.skip(at, names))?;
        let word = self.tokens[at].word.as_str();
        let has_number = |at: Option<usize>| at.is_some_and(|at| self.day_number(at).is_some());
        let is_alone = word.len() >= MIN_MONTH_CHARS && word != "march";
        let before = at.checked_sub(1);
        (is_alone || has_number(before) || has_number(Some(after))).then_some(after)
    }

    /// Returns true if only joining words are between a range and the time.
    fn touches(&self, chunk: &Range<usize>, reading: &Reading<'_>) -> bool {
        let is_used = |at: usize| reading.used.iter().any(|used| used.contains(&at));
        let before = (0..chunk.start)
            .rev()
            .find(|at| !self.is_joint(*at) || is_used(*at));
        let follows = before.is_some_and(|at| reading.time.range.contains(&at));
        let after = (chunk.end..self.tokens.len()).find(|at| !self.is_joint(*at) || is_used(*at));
        let precedes = after.is_some_and(|at| reading.time.range.contains(&at));
        let is_text = reading.frame.is_some() && self.starts_text(reading.time.range.end);
        let is_first_joint = self.is_joint(reading.time.range.end);
        (follows && (!is_text || is_first_joint)) || precedes
    }

    fn is_joint(&self, at: usize) -> bool {
        let words = self.words;
        let entries = [
            words.joints,
            words.and,
            words.on,
            words.at,
            words.weak_at,
            words.within,
            words.every,
            words.of,
            words.articles,
            words.through,
        ];
        let is_single = |entries: &&str| self.skip(at, entries).is_some();
        // "to" and the like start the text.
        let is_connective = self.starts_text(at) && self.skip(at, words.joints).is_none();
        !is_connective && entries.iter().any(is_single)
    }

    /// Extends a range by the joining words before it, for messages.
    fn with_joints(&self, chunk: Range<usize>, used: &[Range<usize>]) -> Range<usize> {
        let is_used = |at: usize| used.iter().any(|range| range.contains(&at));
        let mut start = chunk.start;
        while start > 0 && self.is_joint(start - 1) && !is_used(start - 1) {
            start -= 1;
        }
        start..chunk.end
    }
}
