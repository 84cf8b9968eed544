//! One state of the index, and the search in it.

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

/// A pasted page is asked for by its rarest words.
const MAX_WORDS: usize = 32;

/// Collections that are at most this part of a segment are gone through entry by entry; larger ones are sieved out of
/// what words find.
const SMALL_COLLECTION_DIVISOR: u32 = 8;

pub(super) struct IndexSnapshot {
    searcher: Searcher,
    columns: Vec<SegmentColumns>,
    collections: Arc<[String]>,
}

/// What is known of the entries of a segment besides their words.
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

    /// The largest id of an entry, of those that were removed as well.
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

    /// Scores as BM25 does (k1 1.2 and b 0.75, which are tantivy's own).
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
            let Some(wanted) = columns.entry_filter(collections)? else {
                continue;
            };
            match columns.entries_if_few(segment, fields.collection, &wanted)? {
                Some(few) => best.collect_among(&few, &each, segment, columns)?,
                None => best.collect(any.as_ref(), segment, columns, &wanted)?,
            }
        }
        Ok(best.into_sorted())
    }
}

/// Which entries of a segment may be hits.
enum EntryFilter {
    All,
    /// Those of collections with these numbers.
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
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            numbers.extend(column.dictionary().term_ord(name.as_bytes())?);
        }
        let is_everything = (0..column.num_terms() as u64).all(|number| numbers.contains(&number));
        Ok(match numbers.is_empty() {
            true => None,
            false if is_everything => Some(EntryFilter::All),
            false => Some(EntryFilter::InCollections(numbers)),
        })
    }

    /// The entries that are wanted, in order, where they are few; nothing where they are many.
    fn entries_if_few(
        &self,
        segment: &SegmentReader,
        field: Field,
        wanted: &EntryFilter,
    ) -> tantivy::Result<Option<Vec<DocId>>> {
        let (EntryFilter::InCollections(numbers), Some(column)) = (wanted, &self.collections)
        else {
            return Ok(None);
        };
        let index = segment.inverted_index(field)?;
        let (most, mut entries) = (
            (segment.max_doc() / SMALL_COLLECTION_DIVISOR) as usize,
            Vec::new(),
        );
        for number in numbers {
            let mut name = String::new();
            if !column.ord_to_str(*number, &mut name)? {
                continue;
            }
            let term = Term::from_field_text(field, &name);
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            if entries.len() + postings.size_hint() as usize > most {
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

    fn is_wanted(&self, entry: DocId, wanted: &EntryFilter) -> bool {
        match (wanted, &self.collections) {
            (EntryFilter::All, _) => true,
            (EntryFilter::InCollections(numbers), Some(column)) => column
                .ords()
                .first(entry)
                .is_some_and(|number| numbers.contains(&number)),
            (EntryFilter::InCollections(_), None) => false,
        }
    }
}

/// How common terms are. The terms that stand for one word share a number: else the rare spelling of a common word
/// would count for more than the word.
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

/// The worst of the best is on top, ready to be replaced.
struct TopHits {
    limit: usize,
    hits: BinaryHeap<Reverse<ScoredEntry>>,
}

impl TopHits {
    /// The index skips whatever cannot beat the worst of the best, which is why hits are sieved here and not by one
    /// more clause of the query.
    fn collect(
        &mut self,
        weight: &dyn Weight,
        segment: &SegmentReader,
        columns: &SegmentColumns,
        wanted: &EntryFilter,
    ) -> tantivy::Result<()> {
        let alive = segment.alive_bitset();
        weight.for_each_pruning(self.threshold(), segment, &mut |entry, score| {
            if alive.is_none_or(|alive| alive.is_alive(entry))
                && columns.is_wanted(entry, wanted)
                && let Some(id) = columns.ids.first(entry)
            {
                self.push(ScoredEntry { score, id });
            }
            self.threshold()
        })
    }

    /// The same for a few entries: each word is looked up in each of them, and nowhere else.
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

    /// Just below the worst of the best: an equal score with a smaller id still comes through.
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

/// Greater is better: the higher score, then the smaller id.
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
