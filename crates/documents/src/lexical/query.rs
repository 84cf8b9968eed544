//! A snapshot of the index, and search in it.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use tantivy::columnar::{Column, StrColumn};
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, EnableScoring, Query, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Index, ReloadPolicy, Searcher, SegmentReader, TERMINATED, Term};

use super::index_directory::{COLLECTION, ID, IndexFields};

/// A longer query, such as a pasted page, uses only its rarest words.
const MAX_WORDS: usize = 32;

/// Collections with at most one in this many entries of a segment are scored entry by entry; for
/// larger ones, the hits are filtered.
const SMALL_COLLECTION_DIVISOR: u32 = 8;

pub(super) struct IndexSnapshot {
    searcher: Searcher,
    columns: Vec<SegmentColumns>,
    collections: Arc<[String]>,
}

/// The columns of a segment: ids and collections of its entries.
struct SegmentColumns {
    ids: Column<u64>,
    collections: Option<StrColumn>,
}

impl IndexSnapshot {
    pub fn open(index: &Index) -> tantivy::Result<Self> {
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        let searcher = reader.searcher();
        let columns: Vec<SegmentColumns> = searcher
            .segment_readers()
            .iter()
            .map(SegmentColumns::open)
            .collect::<Result<_, _>>()?;
        let mut collections = BTreeSet::new();
        for column in columns
            .iter()
            .filter_map(|columns| columns.collections.as_ref())
        {
            let mut names = column.dictionary().stream()?;
            while let Some((name, _)) = names.next() {
                collections.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        Ok(Self {
            searcher,
            columns,
            collections: collections.into_iter().collect(),
        })
    }

    pub fn collections(&self) -> Arc<[String]> {
        Arc::clone(&self.collections)
    }

    /// Returns the largest id, including removed entries.
    pub fn max_id(&self) -> Option<u64> {
        let segments = self.searcher.segment_readers().iter().zip(&self.columns);
        segments
            .filter(|(segment, _)| segment.max_doc() > 0)
            .map(|(_, columns)| columns.ids.max_value())
            .max()
    }

    pub fn count(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Returns the best entries by BM25 (with tantivy's k1 = 1.2 and b = 0.75).
    pub fn search(
        &self,
        fields: IndexFields,
        words: Vec<Vec<String>>,
        collections: Option<&[String]>,
        limit: usize,
    ) -> tantivy::Result<Vec<(u64, f32)>> {
        let statistics = Statistics::from_searcher(&self.searcher, fields.text, words)?;
        if statistics.frequencies.is_empty() {
            return Ok(Vec::new());
        }
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.searcher);
        let terms: Vec<TermQuery> = statistics
            .frequencies
            .keys()
            .map(|term| TermQuery::new(term.clone(), IndexRecordOption::WithFreqs))
            .collect();
        let any = terms
            .iter()
            .map(|term| Box::new(term.clone()) as Box<dyn Query>)
            .collect();
        let any = BooleanQuery::union(any).weight(scoring)?;
        let each: Vec<_> = terms
            .iter()
            .map(|term| term.weight(scoring))
            .collect::<Result<_, _>>()?;
        let mut best = TopHits {
            limit,
            hits: BinaryHeap::new(),
        };
        for (segment, columns) in self.searcher.segment_readers().iter().zip(&self.columns) {
            let Some(filter) = columns.entry_filter(collections)? else {
                continue;
            };
            match columns.entries_if_few(segment, fields.collection, &filter)? {
                Some(few) => best.collect_among(&few, &each, segment, columns)?,
                None => best.collect(any.as_ref(), segment, columns, &filter)?,
            }
        }
        Ok(best.into_sorted())
    }
}

/// The entries of a segment that may be hits.
enum EntryFilter {
    All,
    /// The entries of the collections with these ordinals.
    InCollections(Vec<u64>),
}

impl SegmentColumns {
    fn open(segment: &SegmentReader) -> tantivy::Result<Self> {
        let fields = segment.fast_fields();
        Ok(Self {
            ids: fields.u64(ID)?,
            collections: fields.str(COLLECTION)?,
        })
    }

    fn entry_filter(&self, names: Option<&[String]>) -> std::io::Result<Option<EntryFilter>> {
        let Some(names) = names else {
            return Ok(Some(EntryFilter::All));
        };
        let Some(column) = &self.collections else {
            return Ok(None);
        };
        let mut ordinals = Vec::with_capacity(names.len());
        for name in names {
            ordinals.extend(column.dictionary().term_ord(name.as_bytes())?);
        }
        let is_all = (0..column.num_terms() as u64).all(|ordinal| ordinals.contains(&ordinal));
        Ok(match ordinals.is_empty() {
            true => None,
            false if is_all => Some(EntryFilter::All),
            false => Some(EntryFilter::InCollections(ordinals)),
        })
    }

    /// Returns the entries that pass the filter, in order, or `None` if there are many.
    fn entries_if_few(
        &self,
        segment: &SegmentReader,
        field: Field,
        filter: &EntryFilter,
    ) -> tantivy::Result<Option<Vec<DocId>>> {
        let (EntryFilter::InCollections(ordinals), Some(column)) = (filter, &self.collections)
        else {
            return Ok(None);
        };
        let index = segment.inverted_index(field)?;
        let limit = (segment.max_doc() / SMALL_COLLECTION_DIVISOR) as usize;
        let mut entries = Vec::new();
        for ordinal in ordinals {
            let mut name = String::new();
            if !column.ord_to_str(*ordinal, &mut name)? {
                continue;
            }
            let term = Term::from_field_text(field, &name);
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            if entries.len() + postings.size_hint() as usize > limit {
                return Ok(None);
            }
            while postings.doc() != TERMINATED {
                entries.push(postings.doc());
                postings.advance();
            }
        }
        entries.sort_unstable();
        Ok(Some(entries))
    }

    fn passes(&self, entry: DocId, filter: &EntryFilter) -> bool {
        match (filter, &self.collections) {
            (EntryFilter::All, _) => true,
            (EntryFilter::InCollections(ordinals), Some(column)) => column
                .ords()
                .first(entry)
                .is_some_and(|ordinal| ordinals.contains(&ordinal)),
            (EntryFilter::InCollections(_), None) => false,
        }
    }
}

/// Document frequencies of terms. The terms of one word share a frequency: otherwise a rare
/// spelling of a common word would weigh more than the word.
struct Statistics<'a> {
    searcher: &'a Searcher,
    frequencies: BTreeMap<Term, u64>,
}

impl<'a> Statistics<'a> {
    fn from_searcher(
        searcher: &'a Searcher,
        field: Field,
        words: Vec<Vec<String>>,
    ) -> tantivy::Result<Self> {
        let mut known = Vec::with_capacity(words.len());
        for word in words {
            let mut terms = Vec::with_capacity(word.len());
            let mut entries = 0;
            for term in word.iter().map(|term| Term::from_field_text(field, term)) {
                let frequency = searcher.doc_freq(&term)?;
                entries += frequency;
                if frequency > 0 {
                    terms.push(term);
                }
            }
            if entries > 0 {
                known.push((entries, terms));
            }
        }
        known.sort_by_key(|(entries, _)| *entries);
        known.truncate(MAX_WORDS);
        let mut frequencies = BTreeMap::new();
        for (entries, terms) in known {
            for term in terms {
                frequencies.entry(term).or_insert(entries);
            }
        }
        Ok(Self {
            searcher,
            frequencies,
        })
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searcher.total_num_docs()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let frequency = self.frequencies.get(term).copied().unwrap_or(0);
        Ok(frequency.min(self.searcher.total_num_docs()?))
    }
}

/// The best hits so far. The worst of them is on top of the heap.
struct TopHits {
    limit: usize,
    hits: BinaryHeap<Reverse<ScoredEntry>>,
}

impl TopHits {
    /// Collects the hits of a segment that pass the filter. The filter is applied here, not as a clause
    /// of the query, because the index skips entries below the threshold only for plain unions.
    fn collect(
        &mut self,
        weight: &dyn Weight,
        segment: &SegmentReader,
        columns: &SegmentColumns,
        filter: &EntryFilter,
    ) -> tantivy::Result<()> {
        let alive = segment.alive_bitset();
        weight.for_each_pruning(self.threshold(), segment, &mut |entry, score| {
            if alive.is_none_or(|alive| alive.is_alive(entry))
                && columns.passes(entry, filter)
                && let Some(id) = columns.ids.first(entry)
            {
                self.push(ScoredEntry { score, id });
            }
            self.threshold()
        })
    }

    /// Collects hits among a few entries: looks up each word in these entries only.
    fn collect_among(
        &mut self,
        entries: &[DocId],
        words: &[Box<dyn Weight>],
        segment: &SegmentReader,
        columns: &SegmentColumns,
    ) -> tantivy::Result<()> {
        let mut scores = vec![0.0_f32; entries.len()];
        for word in words {
            let mut scorer = word.scorer(segment, 1.0)?;
            for (entry, score) in entries.iter().zip(&mut scores) {
                if scorer.doc() < *entry {
                    scorer.seek(*entry);
                }
                if scorer.doc() == *entry {
                    *score += scorer.score();
                }
            }
        }
        let alive = segment.alive_bitset();
        for (&entry, score) in entries.iter().zip(scores).filter(|(_, score)| *score > 0.0) {
            if alive.is_none_or(|alive| alive.is_alive(entry))
                && score > self.threshold()
                && let Some(id) = columns.ids.first(entry)
            {
                self.push(ScoredEntry { score, id });
            }
        }
        Ok(())
    }

    fn push(&mut self, hit: ScoredEntry) {
        self.hits.push(Reverse(hit));
        if self.hits.len() > self.limit {
            self.hits.pop();
        }
    }

    /// Returns a score just below the worst of the best hits, so that an equal score with a smaller
    /// id passes.
    fn threshold(&self) -> f32 {
        match self.hits.peek() {
            Some(Reverse(worst)) if self.hits.len() >= self.limit => worst.score.next_down(),
            _ => f32::MIN,
        }
    }

    fn into_sorted(self) -> Vec<(u64, f32)> {
        self.hits
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(hit)| (hit.id, hit.score))
            .collect()
    }
}

/// A hit. Ordered by score, then by smaller id; greater is better.
#[derive(Clone, Copy, Debug)]
struct ScoredEntry {
    score: f32,
    id: u64,
}

impl Ord for ScoredEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for ScoredEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ScoredEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ScoredEntry {}
