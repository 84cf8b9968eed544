//! Reads a whole sentence: its time, and what is to be done.

use std::ops::Range;

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::dates::NamedDay;
use super::leftover::{Leftover, Reading};
use super::message::{TimeError, TimeProblem};
use super::reader::{FoundTime, PhraseReader, TimeParts};
use super::resolve::Resolver;
use super::tokens::{Token, tokenize, without};
use super::vocabulary::{Vocabulary, longest_match};
use super::zone::NamedZone;
use super::{LANGUAGES, TimePhrase};

/// The words "remind me" or "wake me up" of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub range: Range<usize>,
    pub is_wake: bool,
}

/// Returns the languages that a sentence can be in: those of its frame, or all.
fn candidates(tokens: &[Token]) -> Vec<(&'static Vocabulary, Option<Frame>)> {
    let framed: Vec<(&Vocabulary, Option<Frame>)> = LANGUAGES
        .iter()
        .filter_map(|words| Some((*words, Some(find_frame(tokens, words)?))))
        .collect();
    match framed.is_empty() {
        true => LANGUAGES.iter().map(|words| (*words, None)).collect(),
        false => framed,
    }
}

/// Finds the first "remind me" of a sentence.
pub(super) fn find_frame(tokens: &[Token], words: &Vocabulary) -> Option<Frame> {
    (0..tokens.len()).find_map(|at| {
        let remind = longest_match(tokens, at, words.remind);
        let wake = longest_match(tokens, at, words.wake);
        let count = remind.max(wake)?;
        Some(Frame {
            range: at..at + count,
            is_wake: wake.is_some() && wake >= remind,
        })
    })
}

/// Reads the time of a sentence, as seen at `now`.
pub(super) fn read(sentence: &str, now: &Zoned) -> Result<TimePhrase, TimeError> {
    let tokens = tokenize(sentence);
    let candidates = candidates(&tokens);
    let mut best: Option<(PhraseReader<'_>, Option<&Frame>, Vec<FoundTime>)> = None;
    for (words, frame) in &candidates {
        let reader = PhraseReader {
            sentence,
            tokens: &tokens,
            words,
            now,
        };
        let found = reader.find_all();
        let length = |found: &[FoundTime]| found.first().map_or(0, |found| found.range.len());
        let is_better = |best: &[FoundTime]| length(&found) > length(best);
        if best.as_ref().is_none_or(|(_, _, best)| is_better(best)) {
            best = Some((reader, frame.as_ref(), found));
        }
    }
    let Some((reader, frame, found)) = best.filter(|(_, _, found)| !found.is_empty()) else {
        return Err(no_time(sentence, &tokens, &candidates, now));
    };
    let sentence = Sentence { reader, frame };
    sentence.read(found)
}

/// Says which words are not understood, or that there is no time.
fn no_time(
    sentence: &str,
    tokens: &[Token],
    candidates: &[(&'static Vocabulary, Option<Frame>)],
    now: &Zoned,
) -> TimeError {
    for (words, _) in candidates {
        let reader = PhraseReader {
            sentence,
            tokens,
            words,
            now,
        };
        if let Some(range) = reader.first_time_words() {
            let problem = match reader.skip(range.start, words.past_days) {
                Some(_) => TimeProblem::Past,
                None => TimeProblem::NotUnderstood,
            };
            return TimeError::new(words, problem, &[reader.text(&range)]);
        }
    }
    let words = candidates.first().map_or(LANGUAGES[0], |(words, _)| words);
    let shown = lango_text::sanitize::truncated_line(sentence, 120);
    TimeError::new(words, TimeProblem::NoTime, &[&shown])
}

struct Sentence<'a> {
    reader: PhraseReader<'a>,
    frame: Option<&'a Frame>,
}

impl Sentence<'_> {
    fn read(&self, found: Vec<FoundTime>) -> Result<TimePhrase, TimeError> {
        let primary = self.primary(&found);
        let (time, used) = self.merged(primary, &found);
        let reading = Reading {
            time: primary,
            used: &used,
            frame: self.frame.map(|frame| &frame.range),
        };
        match self.reader.leftover(&reading) {
            Some(Leftover::Unread(range)) => {
                let is_past = self.reader.skip(range.start, self.reader.words.past_days);
                return Err(match is_past {
                    Some(_) => self.error(TimeProblem::Past, &range),
                    None => self.error(TimeProblem::NotUnderstood, &range),
                });
            }
            Some(Leftover::Apart(range)) => {
                let texts = [self.reader.text(&primary.range), self.reader.text(&range)];
                return Err(TimeError::new(
                    self.reader.words,
                    TimeProblem::Apart,
                    &texts,
                ));
            }
            None => {}
        }
        self.finish(time, &used)
    }

    /// Returns the time that the sentence is about: the one next to "remind me", at the start or at the end.
    fn primary<'f>(&self, found: &'f [FoundTime]) -> &'f FoundTime {
        let polite = self.reader.words.polite;
        let start = self.frame.map_or(0, |frame| frame.range.end);
        let start = self.reader.skip_optional(start, polite);
        let end = self.reader.tokens.len();
        let is_before = |time: &&FoundTime| {
            let frame = self.frame.map(|frame| frame.range.start);
            time.range.start == 0 && frame.is_some_and(|start| start == time.range.end)
        };
        let at_start = found.iter().find(|time| time.range.start == start);
        let at_end = || found.iter().find(|time| time.range.end == end);
        let first = found.iter().find(is_before).or(at_start).or_else(at_end);
        first.unwrap_or(&found[0])
    }

    /// Joins a day and a time of day that stand apart: "tomorrow check the disk at 9".
    fn merged(&self, primary: &FoundTime, found: &[FoundTime]) -> (FoundTime, Vec<Range<usize>>) {
        let end = self.reader.tokens.len();
        let other = found.iter().find(|time| time.range.end == end);
        let other = other.filter(|time| time.range != primary.range);
        let merged = other.and_then(|other| {
            let parts = match (&primary.parts, &other.parts) {
                (
                    TimeParts::Once {
                        day: Some(day),
                        clock: None,
                    },
                    TimeParts::Once { day: None, clock },
                ) => TimeParts::Once {
                    day: Some(day.clone()),
                    clock: clock.clone(),
                },
                (TimeParts::Repeated { days, clocks }, TimeParts::Once { day: None, clock })
                | (TimeParts::Once { day: None, clock }, TimeParts::Repeated { days, clocks })
                    if clocks.is_empty() =>
                {
                    TimeParts::Repeated {
                        days: days.clone(),
                        clocks: clock.iter().cloned().collect(),
                    }
                }
                _ => return None,
            };
            let time = FoundTime {
                parts,
                range: primary.range.clone(),
                zone: primary.zone.clone().or_else(|| other.zone.clone()),
            };
            Some((time, vec![primary.range.clone(), other.range.clone()]))
        });
        merged.unwrap_or_else(|| (primary.clone(), vec![primary.range.clone()]))
    }

    fn finish(&self, time: FoundTime, used: &[Range<usize>]) -> Result<TimePhrase, TimeError> {
        let reader = &self.reader;
        let zone = match &time.zone {
            Some(NamedZone::Unknown(name)) => {
                return Err(TimeError::new(
                    reader.words,
                    TimeProblem::UnknownZone,
                    &[name],
                ));
            }
            Some(NamedZone::Known(name)) => Some(name.clone()),
            None => None,
        };
        let own = reader.now.time_zone().iana_name();
        let other = zone.as_deref().filter(|zone| Some(*zone) != own);
        if let Some(other) = other.and_then(|zone| TimeZone::get(zone).ok()) {
            // Days are read again, as they are in that zone.
            return read(reader.sentence, &reader.now.with_time_zone(other)).map(|phrase| {
                TimePhrase {
                    time_zone: zone,
                    ..phrase
                }
            });
        }
        let is_wake = self.frame.is_some_and(|frame| frame.is_wake);
        let resolver = Resolver {
            now: reader.now,
            is_reminder: self.frame.is_some() && !is_wake,
        };
        let readings = match &time.parts {
            TimeParts::Once {
                day: Some(NamedDay::Unclear(one, other)),
                ..
            } => Some([*one, *other].map(|date| date.strftime("%-d %B %Y").to_string())),
            _ => None,
        };
        let (kind, text) = resolver.resolve(time.parts).map_err(|problem| {
            let shown = reader.text(&used[0]);
            match (problem, &readings) {
                (TimeProblem::TwoDates, Some([one, other])) => {
                    TimeError::new(reader.words, problem, &[shown, one, other])
                }
                _ => self.error(problem, &used[0]),
            }
        })?;
        let mut used = used.to_vec();
        used.sort_by_key(|range| range.start);
        Ok(TimePhrase {
            kind,
            text,
            rest: without(reader.sentence, reader.tokens, &used),
            time_zone: zone,
            words: reader.words,
        })
    }

    fn error(&self, problem: TimeProblem, range: &Range<usize>) -> TimeError {
        TimeError::new(self.reader.words, problem, &[self.reader.text(range)])
    }
}
