//! A batch of the vector file: added and removed rows, and the last change of the store that it
//! covers.

use lango_domain::documents::ChunkOwner;
use lango_domain::event::{Principal, SessionId};

use super::quantized::QuantizedVector;
use lango_text::fingerprint;

/// The header of every batch: the length of its content and the fingerprint.
pub(super) const HEADER_LEN: usize = 16;

/// A batch to write.
#[derive(Default)]
pub(super) struct NewVectorBatch {
    pub through: u64,
    /// Owners that are new in the file. Their numbers follow their order in the file.
    pub owners: Vec<ChunkOwner>,
    pub removed: Vec<u64>,
    pub dimensions: usize,
    pub rows: Vec<NewVectorRow>,
}

pub(super) struct NewVectorRow {
    pub id: u64,
    pub owner: u32,
    pub vector: QuantizedVector,
}

impl NewVectorBatch {
    /// Returns the bytes of the batch with its header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let stride = self.rows.first().map_or(0, |row| row.vector.coarse.len());
        let mut bytes = Vec::with_capacity(HEADER_LEN + 256 + self.rows.len() * (2 * stride + 16));
        bytes.resize(HEADER_LEN, 0);
        put_number(&mut bytes, self.through);
        put_number(&mut bytes, self.owners.len() as u64);
        for owner in &self.owners {
            put_text(&mut bytes, owner.principal.as_str());
            put_text(&mut bytes, &owner.collection);
            put_number(&mut bytes, u64::from(owner.session.is_some()));
            put_text(
                &mut bytes,
                owner
                    .session
                    .as_ref()
                    .map_or("", |session| session.as_str()),
            );
        }
        put_number(&mut bytes, self.removed.len() as u64);
        self.removed
            .iter()
            .for_each(|id| put_number(&mut bytes, *id));
        put_number(&mut bytes, self.dimensions as u64);
        put_number(&mut bytes, stride as u64);
        put_number(&mut bytes, self.rows.len() as u64);
        for row in &self.rows {
            put_number(&mut bytes, row.id);
            bytes.extend_from_slice(&row.owner.to_le_bytes());
            bytes.extend_from_slice(&row.vector.scale.to_le_bytes());
            bytes.extend(
                row.vector
                    .coarse
                    .iter()
                    .chain(&row.vector.fine)
                    .map(|&part| part.cast_unsigned()),
            );
        }
        let (length, sum) = (
            (bytes.len() - HEADER_LEN) as u64,
            fingerprint(&bytes[HEADER_LEN..]),
        );
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// A batch read from the file.
pub(super) struct VectorBatch<'a> {
    pub through: u64,
    pub owners: Vec<ChunkOwner>,
    pub removed: Vec<u64>,
    pub dimensions: usize,
    stride: usize,
    rows: &'a [u8],
}

/// A row read from the file.
pub(super) struct VectorRow<'a> {
    pub id: u64,
    pub owner: u32,
    pub scale: f32,
    pub coarse: &'a [u8],
    pub fine: &'a [u8],
}

impl<'a> VectorBatch<'a> {
    /// Parses the batch at the start of `bytes` and returns it with its length, including the header.
    /// Returns `None` if it is incomplete or corrupt.
    pub fn parse(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut header = ByteReader(bytes);
        let (length, sum) = (header.read_len()?, header.read_u64()?);
        let content = header.read_slice(length)?;
        if fingerprint(content) != sum {
            return None;
        }
        let mut content = ByteReader(content);
        let through = content.read_u64()?;
        let owners = (0..content.read_len()?)
            .map(|_| content.read_owner())
            .collect::<Option<_>>()?;
        let removed = (0..content.read_len()?)
            .map(|_| content.read_u64())
            .collect::<Option<_>>()?;
        // Not read with `read_len`: a batch without rows may have fewer bytes left.
        let (dimensions, stride) = (content.read_usize()?, content.read_usize()?);
        let count = content.read_len()?;
        let rows =
            content.read_slice(count.checked_mul(stride.checked_mul(2)?.checked_add(16)?)?)?;
        Some((
            Self {
                through,
                owners,
                removed,
                dimensions,
                stride,
                rows,
            },
            HEADER_LEN + length,
        ))
    }

    pub fn rows(&self) -> impl Iterator<Item = VectorRow<'a>> {
        let stride = self.stride;
        self.rows
            .chunks_exact(16 + 2 * stride)
            .filter_map(move |row| {
                let mut row = ByteReader(row);
                let (id, owner) = (row.read_u64()?, u32::from_le_bytes(row.read_array()?));
                let scale = f32::from_le_bytes(row.read_array()?);
                Some(VectorRow {
                    id,
                    owner,
                    scale,
                    coarse: row.read_slice(stride)?,
                    fine: row.read_slice(stride)?,
                })
            })
    }

    pub fn stride(&self) -> usize {
        self.stride
    }
}

/// A reader for the rest of a byte slice.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn read_slice(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn read_u64(&mut self) -> Option<u64> {
        self.read_array().map(u64::from_le_bytes)
    }

    fn read_usize(&mut self) -> Option<usize> {
        usize::try_from(self.read_u64()?).ok()
    }

    /// Returns a length, or `None` if it exceeds the rest, so that no memory is reserved for it.
    fn read_len(&mut self) -> Option<usize> {
        self.read_usize().filter(|length| *length <= self.0.len())
    }

    fn read_str(&mut self) -> Option<&'a str> {
        let length = self.read_len()?;
        str::from_utf8(self.read_slice(length)?).ok()
    }

    fn read_owner(&mut self) -> Option<ChunkOwner> {
        let principal = Principal::new(self.read_str()?);
        let collection = self.read_str()?.to_owned();
        let has_session = self.read_u64()? == 1;
        let session = self.read_str()?;
        Some(ChunkOwner {
            principal,
            collection,
            session: has_session.then(|| SessionId::new(session)),
        })
    }
}
