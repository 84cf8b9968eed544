//! References to elements: numbers that are given once and never to another element (B140).

use crate::error::{BrowserError, Result};
use crate::tab_state::{DocumentId, FrameId, TabId};

/// A reference, written `e12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementRef(pub u64);

impl ElementRef {
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim().trim_matches(['[', ']', '@']);
        let digits = text.strip_prefix(['e', 'E']).unwrap_or(text);
        match digits.parse() {
            Ok(number) if number > 0 && digits.len() < 16 => Ok(Self(number)),
            _ => Err(BrowserError::action(format!(
                "`{}` is not a reference; references look like e12 and stand in the outline",
                lango_text::sanitize::truncated_line(text, 40)
            ))),
        }
    }
}

impl std::fmt::Display for ElementRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// The document that a reference belongs to. The script in that document knows the element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefPlace {
    pub tab: TabId,
    pub frame: FrameId,
    pub document: DocumentId,
}

/// All references of a session. Each call into a document may create a range of them.
#[derive(Debug)]
pub struct RefTable {
    next: u64,
    /// The first number of each range, ascending, and its document.
    ranges: Vec<(u64, RefPlace)>,
}

impl Default for RefTable {
    fn default() -> Self {
        Self {
            next: 1,
            ranges: Vec::new(),
        }
    }
}

impl RefTable {
    /// The next free number.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Records that a document created all numbers up to `next`.
    pub fn record(&mut self, next: u64, place: RefPlace) {
        if next > self.next {
            self.ranges.push((self.next, place));
            self.next = next;
        }
    }

    pub fn place(&self, element: ElementRef) -> Result<&RefPlace> {
        let at = self
            .ranges
            .partition_point(|(first, _)| *first <= element.0);
        let range = at.checked_sub(1).and_then(|at| self.ranges.get(at));
        match range {
            Some((_, place)) if element.0 < self.next => Ok(place),
            _ => Err(BrowserError::action(format!(
                "there is no reference {element}; look at the page with browser_observe"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(document: &str) -> RefPlace {
        RefPlace {
            tab: "t".into(),
            frame: "f".into(),
            document: document.into(),
        }
    }

    /// B140
    #[test]
    fn a_number_belongs_to_the_document_that_created_it() {
        let mut refs = RefTable::default();
        refs.record(4, place("a"));
        refs.record(4, place("nothing new"));
        refs.record(6, place("b"));
        for (number, document) in [(1, "a"), (3, "a"), (4, "b"), (5, "b")] {
            assert_eq!(&*refs.place(ElementRef(number)).unwrap().document, document);
        }
        assert!(refs.place(ElementRef(6)).is_err());
        assert!(RefTable::default().place(ElementRef(1)).is_err());
    }

    #[test]
    fn references_are_read_as_models_write_them() {
        for text in ["e12", "[e12]", " E12 ", "12", "@e12"] {
            assert_eq!(ElementRef::parse(text).unwrap(), ElementRef(12), "{text}");
        }
        for text in ["", "e", "e0", "e-1", "x12", "e1.5", "e99999999999999999999"] {
            assert!(ElementRef::parse(text).is_err(), "{text}");
        }
    }
}
