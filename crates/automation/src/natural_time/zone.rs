//! Time zones in sentences: `Europe/Berlin`, `UTC+2`, `EST`, `Tokyo time`.

use jiff::tz::TimeZone;

use super::reader::{PhraseReader, Read};
use super::tokens::fold;

/// A time zone that a sentence names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedZone {
    /// The IANA name.
    Known(String),
    /// The words of the sentence.
    Unknown(String),
}

/// First parts of IANA names.
const AREAS: [&str; 12] = [
    "africa",
    "america",
    "antarctica",
    "arctic",
    "asia",
    "atlantic",
    "australia",
    "canada",
    "europe",
    "indian",
    "pacific",
    "etc",
];

/// Abbreviations mean the zone where they are used: also in summer, `EST` is the time of New York.
const ABBREVIATIONS: [(&str, &str); 36] = [
    ("est", "America/New_York"),
    ("edt", "America/New_York"),
    ("et", "America/New_York"),
    ("cst", "America/Chicago"),
    ("cdt", "America/Chicago"),
    ("ct", "America/Chicago"),
    ("mst", "America/Denver"),
    ("mdt", "America/Denver"),
    ("mt", "America/Denver"),
    ("pst", "America/Los_Angeles"),
    ("pdt", "America/Los_Angeles"),
    ("pt", "America/Los_Angeles"),
    ("akst", "America/Anchorage"),
    ("hst", "Pacific/Honolulu"),
    ("brt", "America/Sao_Paulo"),
    ("cet", "Europe/Berlin"),
    ("cest", "Europe/Berlin"),
    ("mez", "Europe/Berlin"),
    ("mesz", "Europe/Berlin"),
    ("bst", "Europe/London"),
    ("wet", "Europe/Lisbon"),
    ("west", "Europe/Lisbon"),
    ("eet", "Europe/Athens"),
    ("eest", "Europe/Athens"),
    ("msk", "Europe/Moscow"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("hkt", "Asia/Hong_Kong"),
    ("sgt", "Asia/Singapore"),
    ("aest", "Australia/Sydney"),
    ("aedt", "Australia/Sydney"),
    ("acst", "Australia/Adelaide"),
    ("awst", "Australia/Perth"),
    ("nzst", "Pacific/Auckland"),
    ("nzdt", "Pacific/Auckland"),
    ("sast", "Africa/Johannesburg"),
];

/// Names before "time" that are no cities.
const REGIONS: [(&str, &str); 7] = [
    ("eastern", "America/New_York"),
    ("central", "America/Chicago"),
    ("mountain", "America/Denver"),
    ("pacific", "America/Los_Angeles"),
    ("uk", "Europe/London"),
    ("japan", "Asia/Tokyo"),
    ("india", "Asia/Kolkata"),
];

/// Most words of a city's name.
const MAX_CITY_WORDS: usize = 3;

/// Returns true for the first part of an IANA name.
pub(super) fn is_area(word: &str) -> bool {
    let area = word.split('/').next().unwrap_or_default();
    AREAS.contains(&area.to_lowercase().as_str())
}

impl PhraseReader<'_> {
    /// Reads a time zone.
    pub(super) fn zone(&self, at: usize) -> Read<NamedZone> {
        let marked = self.skip(at, "in").unwrap_or(at);
        let token = self.tokens.get(marked)?;
        if token.is_quoted {
            return None;
        }
        let word = token.word.as_str();
        if word.contains('/') && is_area(word) {
            let zone = match TimeZone::get(word).ok().and_then(|zone| iana_name(&zone)) {
                Some(name) => NamedZone::Known(name),
                None => NamedZone::Unknown(word.to_owned()),
            };
            return Some((zone, marked + 1));
        }
        if let Some(zone) = offset_zone(word) {
            return Some((zone, marked + 1));
        }
        let abbreviation = ABBREVIATIONS.iter().find(|(name, _)| *name == word);
        if let Some((_, name)) = abbreviation.filter(|_| token.is_uppercase) {
            return Some((NamedZone::Known((*name).to_owned()), marked + 1));
        }
        self.city_zone(at, marked)
    }

    /// "Tokyo time", "heure de Tokyo"
    fn city_zone(&self, at: usize, marked: usize) -> Read<NamedZone> {
        if let Some(start) = self.skip(at, self.words.zone_before) {
            let known = (1..=MAX_CITY_WORDS)
                .rev()
                .find_map(|count| Some((self.city(start, count)?, start + count)));
            return known.or_else(|| {
                let word = &self.tokens.get(start)?;
                let is_name = word.is_capitalized;
                is_name.then(|| (NamedZone::Unknown(word.word.clone()), start + 1))
            });
        }
        for count in 1..=MAX_CITY_WORDS {
            let Some(end) = self.skip(marked + count, self.words.zone_after) else {
                continue;
            };
            if let Some(zone) = self.city(marked, count) {
                return Some((zone, end));
            }
            let names = &self.tokens[marked..marked + count];
            let is_name = names.iter().all(|token| token.is_capitalized);
            if (marked > at && count == 1) || is_name {
                let words: Vec<&str> = names.iter().map(|token| token.word.as_str()).collect();
                return Some((NamedZone::Unknown(words.join(" ")), end));
            }
        }
        None
    }

    fn city(&self, at: usize, count: usize) -> Option<NamedZone> {
        let tokens = self.tokens.get(at..at + count)?;
        let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
        let name = words.join("_");
        if let Some((_, zone)) = REGIONS.iter().find(|(region, _)| *region == name) {
            return Some(NamedZone::Known((*zone).to_owned()));
        }
        // "Berliner Zeit"
        let stem = name.strip_suffix("er").unwrap_or(&name);
        let is_city = |zone: &str| {
            let city = fold(zone.rsplit('/').next().unwrap_or_default());
            zone.contains('/') && (city == name || city == stem)
        };
        let mut zones = jiff::tz::db().available().map(|zone| zone.to_string());
        zones.find(|zone| is_city(zone)).map(NamedZone::Known)
    }

    /// Returns true for the name of a zone that stands alone.
    pub(super) fn is_zone_word(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| {
            let is_known = ABBREVIATIONS.iter().any(|(name, _)| *name == token.word);
            (is_known && token.is_uppercase && token.word.len() > 2)
                || (token.word.contains('/') && is_area(&token.word))
        })
    }
}

fn iana_name(zone: &TimeZone) -> Option<String> {
    zone.iana_name().map(str::to_owned)
}

/// Reads `utc`, `gmt` and `utc+2`. Only whole hours have a name.
fn offset_zone(word: &str) -> Option<NamedZone> {
    let offset = word.strip_prefix("utc").or(word.strip_prefix("gmt"))?;
    if offset.is_empty() {
        return Some(NamedZone::Known("UTC".to_owned()));
    }
    let offset = offset.strip_suffix(":00").unwrap_or(offset);
    let (sign, hours) = offset.split_at_checked(1)?;
    // The names of these zones count to the west.
    let sign = match sign {
        "+" => '-',
        "-" => '+',
        _ => return None,
    };
    let name = hours
        .parse::<u8>()
        .ok()
        .map(|hours| format!("Etc/GMT{sign}{hours}"));
    let known = name.filter(|name| TimeZone::get(name).is_ok());
    Some(known.map_or_else(|| NamedZone::Unknown(word.to_owned()), NamedZone::Known))
}
