//! Retrieval metrics: recall and nDCG over queries with relevance judgments.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

/// For each query, the relevance grades of documents.
pub type Judgments = HashMap<String, HashMap<String, u32>>;

/// The mean over all queries with a relevant document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RetrievalMetrics {
    pub queries: usize,
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
}

/// Sums metrics over queries.
#[derive(Default)]
pub struct MetricsSum {
    sums: RetrievalMetrics,
}

impl MetricsSum {
    /// Adds a query with its found documents, best first; repeated documents count once.
    pub fn add(&mut self, found: &[String], judged: &HashMap<String, u32>) {
        let mut seen = HashSet::new();
        let found: Vec<&String> = found
            .iter()
            .filter(|document| seen.insert(*document))
            .collect();
        let relevant = judged.values().filter(|grade| **grade > 0).count();
        if relevant == 0 {
            return;
        }
        let grade = |document: &&String| judged.get(*document).copied().unwrap_or(0);
        let recall = |limit: usize| {
            found
                .iter()
                .take(limit)
                .filter(|document| grade(document) > 0)
                .count() as f64
                / relevant as f64
        };
        self.sums.queries += 1;
        self.sums.recall_5 += recall(5);
        self.sums.recall_10 += recall(10);
        let mut best: Vec<u32> = judged.values().copied().collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        let found: Vec<u32> = found.iter().map(grade).collect();
        self.sums.ndcg_10 += dcg(&found) / dcg(&best);
    }

    pub fn mean(&self) -> RetrievalMetrics {
        let queries = self.sums.queries.max(1) as f64;
        RetrievalMetrics {
            queries: self.sums.queries,
            recall_5: self.sums.recall_5 / queries,
            recall_10: self.sums.recall_10 / queries,
            ndcg_10: self.sums.ndcg_10 / queries,
        }
    }
}

/// Returns the discounted cumulative gain of the first ten documents.
fn dcg(grades: &[u32]) -> f64 {
    grades
        .iter()
        .take(10)
        .enumerate()
        .map(|(at, grade)| f64::from(*grade) / (at as f64 + 2.0).log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_depend_on_the_order() {
        let judged: HashMap<String, u32> = [("a".to_owned(), 1), ("b".to_owned(), 1)].into();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let metrics = |found: &[&str]| {
            let mut sum = MetricsSum::default();
            sum.add(&names(found), &judged);
            sum.mean()
        };
        let perfect = metrics(&["a", "a", "b"]);
        assert_eq!(
            (perfect.recall_5, perfect.recall_10, perfect.ndcg_10),
            (1.0, 1.0, 1.0)
        );
        let late = metrics(&["x", "a", "y", "z", "w", "b"]);
        assert_eq!((late.recall_5, late.recall_10), (0.5, 1.0));
        assert!(late.ndcg_10 < 0.7 && late.ndcg_10 > 0.4);
        assert_eq!(metrics(&[]).ndcg_10, 0.0);
    }
}
