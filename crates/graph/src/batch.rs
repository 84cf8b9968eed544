//! The binary format of fact batches. Each batch is self-contained and stores every name once, so
//! that deleting a batch deletes everything in it.

use std::collections::HashMap;

use super::fact::FactRef;
use super::interner::{StringInterner, normalize_spaces};
use super::validity::Moment;

/// The first byte of a batch. A new format gets another number.
const FORMAT_VERSION: u8 = 1;
/// Most facts in one batch.
pub const MAX_FACTS: usize = 1 << 16;

/// Everything about a fact apart from its triple. Numbers refer to texts; 0 is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FactDetail {
    pub from: Option<Moment>,
    pub to: Option<Moment>,
    pub subject_type: u32,
    pub object_type: u32,
    pub properties: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a batch of facts cannot be decoded: it is corrupt or was written by a newer Lango")]
pub struct BatchError;

/// Encodes one batch.
pub struct BatchWriter {
    names: StringInterner,
    predicates: StringInterner,
    texts: StringInterner,
    details: HashMap<FactDetail, u64>,
    detail_bytes: Vec<u8>,
    facts: Vec<u8>,
    fact_count: usize,
    retirements: Vec<u8>,
    retirement_count: usize,
}

impl Default for BatchWriter {
    fn default() -> Self {
        let mut texts = StringInterner::default();
        texts.intern("");
        Self {
            names: StringInterner::default(),
            predicates: StringInterner::default(),
            texts,
            details: HashMap::from([(FactDetail::default(), 0)]),
            detail_bytes: Vec::new(),
            facts: Vec::new(),
            fact_count: 0,
            retirements: Vec::new(),
            retirement_count: 0,
        }
    }
}

impl BatchWriter {
    pub fn fact_count(&self) -> usize {
        self.fact_count
    }

    pub fn push(&mut self, fact: &FactRef<'_>) {
        self.fact_count += 1;
        let triple = self.intern_triple(fact.subject, fact.predicate, fact.object);
        let detail = self.intern_detail(fact);
        triple
            .into_iter()
            .map(u64::from)
            .chain([detail])
            .for_each(|number| write_varint(&mut self.facts, number));
    }

    pub fn retire(&mut self, (subject, predicate, object): (&str, &str, &str), at: Moment) {
        self.retirement_count += 1;
        let triple = self.intern_triple(subject, predicate, object);
        triple
            .into_iter()
            .for_each(|number| write_varint(&mut self.retirements, number.into()));
        write_varint(&mut self.retirements, zigzag(at.0));
    }

    fn intern_triple(&mut self, subject: &str, predicate: &str, object: &str) -> [u32; 3] {
        let subject = self.names.intern(&normalize_spaces(subject));
        [
            subject,
            self.predicates.intern(&normalize_spaces(predicate)),
            self.names.intern(&normalize_spaces(object)),
        ]
    }

    fn intern_detail(&mut self, fact: &FactRef<'_>) -> u64 {
        let is_bare = fact.valid_from.is_none() && fact.valid_to.is_none();
        if is_bare
            && fact.subject_type.is_empty()
            && fact.object_type.is_empty()
            && fact.properties.is_empty()
        {
            return 0;
        }
        let detail = FactDetail {
            from: fact.valid_from,
            to: fact.valid_to,
            subject_type: self.texts.intern(&normalize_spaces(fact.subject_type)),
            object_type: self.texts.intern(&normalize_spaces(fact.object_type)),
            properties: self.texts.intern(fact.properties),
        };
        let next = self.details.len() as u64;
        *self.details.entry(detail).or_insert_with(|| {
            let moment = |moment: Option<Moment>| moment.map_or(0, |moment| zigzag(moment.0) + 1);
            let texts = [detail.subject_type, detail.object_type, detail.properties].map(u64::from);
            let numbers = [moment(detail.from), moment(detail.to)]
                .into_iter()
                .chain(texts);
            numbers.for_each(|number| write_varint(&mut self.detail_bytes, number));
            next
        })
    }

    pub fn finish(self) -> Vec<u8> {
        let mut body = vec![FORMAT_VERSION];
        for texts in [&self.names, &self.predicates, &self.texts] {
            write_varint(&mut body, texts.len() as u64);
            for text in texts.iter() {
                write_varint(&mut body, text.len() as u64);
                body.extend_from_slice(text.as_bytes());
            }
        }
        write_varint(&mut body, self.details.len() as u64 - 1);
        body.extend_from_slice(&self.detail_bytes);
        write_varint(&mut body, self.fact_count as u64);
        body.extend_from_slice(&self.facts);
        write_varint(&mut body, self.retirement_count as u64);
        body.extend_from_slice(&self.retirements);
        body
    }
}

/// A decoded batch. Every number in it is a valid index into its own lists.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedBatch<'a> {
    pub names: Vec<&'a str>,
    pub predicates: Vec<&'a str>,
    pub texts: Vec<&'a str>,
    /// The first entry is the empty detail.
    pub details: Vec<FactDetail>,
    /// Subject, predicate, object, detail.
    pub facts: Vec<[u32; 4]>,
    pub retirements: Vec<([u32; 3], Moment)>,
}

pub fn decode(body: &[u8]) -> Result<DecodedBatch<'_>, BatchError> {
    let [FORMAT_VERSION, rest @ ..] = body else {
        return Err(BatchError);
    };
    let mut bytes = BatchBytes(rest);
    let (names, predicates, texts) = (
        bytes.read_texts()?,
        bytes.read_texts()?,
        bytes.read_texts()?,
    );
    let mut details = vec![FactDetail::default()];
    for _ in 0..bytes.read_count()? {
        let moment = |number: u64| number.checked_sub(1).map(|number| Moment(unzigzag(number)));
        let (from, to) = (moment(bytes.read_varint()?), moment(bytes.read_varint()?));
        let mut text = || bytes.read_index(texts.len());
        let (subject_type, object_type, properties) = (text()?, text()?, text()?);
        details.push(FactDetail {
            from,
            to,
            subject_type,
            object_type,
            properties,
        });
    }
    let mut facts = Vec::new();
    for _ in 0..bytes.read_count()? {
        let [subject, predicate, object] = bytes.read_triple(names.len(), predicates.len())?;
        facts.push([subject, predicate, object, bytes.read_index(details.len())?]);
    }
    let mut retirements = Vec::new();
    for _ in 0..bytes.read_count()? {
        let triple = bytes.read_triple(names.len(), predicates.len())?;
        retirements.push((triple, Moment(unzigzag(bytes.read_varint()?))));
    }
    Ok(DecodedBatch {
        names,
        predicates,
        texts,
        details,
        facts,
        retirements,
    })
}

struct BatchBytes<'a>(&'a [u8]);

impl<'a> BatchBytes<'a> {
    fn read_varint(&mut self) -> Result<u64, BatchError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(BatchError)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BatchError)
    }

    /// Reads the number of items that follow, each of at least one byte.
    fn read_count(&mut self) -> Result<usize, BatchError> {
        let count = usize::try_from(self.read_varint()?).map_err(|_| BatchError)?;
        if count > self.0.len() {
            Err(BatchError)
        } else {
            Ok(count)
        }
    }

    fn read_index(&mut self, limit: usize) -> Result<u32, BatchError> {
        let number = self.read_varint()?;
        if number < limit as u64 {
            u32::try_from(number).map_err(|_| BatchError)
        } else {
            Err(BatchError)
        }
    }

    fn read_triple(&mut self, names: usize, predicates: usize) -> Result<[u32; 3], BatchError> {
        Ok([
            self.read_index(names)?,
            self.read_index(predicates)?,
            self.read_index(names)?,
        ])
    }

    fn read_texts(&mut self) -> Result<Vec<&'a str>, BatchError> {
        let count = self.read_count()?;
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.read_count()?;
            let (text, rest) = self.0.split_at_checked(length).ok_or(BatchError)?;
            self.0 = rest;
            texts.push(std::str::from_utf8(text).map_err(|_| BatchError)?);
        }
        Ok(texts)
    }
}

/// Writes seven bits per byte; the highest bit is set if more bytes follow.
fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Maps numbers of small magnitude to small unsigned numbers.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Vec<u8> {
        let mut writer = BatchWriter::default();
        writer.push(&FactRef {
            subject: "Berlin",
            predicate: "capital of",
            object: "Deutschland",
            ..FactRef::default()
        });
        writer.push(&FactRef {
            subject: "서울",
            predicate: "in",
            object: " 대한\t민국 ",
            object_type: "country",
            properties: r#"{"a":1}"#,
            valid_from: Some(Moment(-5)),
            valid_to: Some(Moment(i64::from(u32::MAX))),
            ..FactRef::default()
        });
        writer.retire(("Berlin", "capital of", "Deutschland"), Moment(-1));
        writer.finish()
    }

    #[test]
    fn round_trips_through_bytes() {
        let body = body();
        let batch = decode(&body).unwrap();
        assert_eq!(batch.names, ["Berlin", "Deutschland", "서울", "대한 민국"]);
        assert_eq!(batch.facts, [[0, 0, 1, 0], [2, 1, 3, 1]]);
        let detail = batch.details[1];
        assert_eq!(
            (detail.from, detail.to),
            (Some(Moment(-5)), Some(Moment(i64::from(u32::MAX))))
        );
        assert_eq!(
            (
                batch.texts[detail.object_type as usize],
                batch.texts[detail.subject_type as usize]
            ),
            ("country", "")
        );
        assert_eq!(batch.retirements, [([0, 0, 1], Moment(-1))]);
    }

    #[test]
    fn rejects_corrupt_bytes_without_panicking() {
        let body = body();
        for end in 0..body.len() {
            assert_eq!(decode(&body[..end]), Err(BatchError));
        }
        for at in 0..body.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = body.clone();
                damaged[at] = byte;
                let _ = decode(&damaged);
            }
        }
        assert_eq!(decode(&[]), Err(BatchError));
        assert_eq!(decode(&[2, 0, 0, 0, 0, 0, 0]), Err(BatchError));
    }
}
