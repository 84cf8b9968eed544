use lango_documents::vectors::{VectorError, VectorMatrix, from_bytes, to_bytes};

/// Deterministic pseudo-random numbers.
struct Noise(u64);

impl Noise {
    fn number(&mut self) -> f32 {
        let mut sum = 0.0;
        for _ in 0..4 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 40) as f32 / (1_u32 << 24) as f32 - 0.5;
        }
        sum
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.number()).collect()
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter()
            .zip(b)
            .map(|(x, y)| f64::from(*x) * f64::from(*y))
            .sum::<f64>()
    };
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

fn brute_force(
    rows: &[Vec<f32>],
    query: &[f32],
    limit: usize,
    filter: impl Fn(u64) -> bool,
) -> Vec<(u64, f32)> {
    let mut all: Vec<(u64, f32)> = (0..)
        .zip(rows)
        .filter(|(id, _)| filter(*id))
        .map(|(id, row)| (id, cosine(row, query)))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(limit);
    all
}

fn matrix(rows: &[Vec<f32>]) -> VectorMatrix {
    let mut vectors = VectorMatrix::new(rows[0].len());
    for (id, row) in (0..).zip(rows) {
        vectors.put(id, id as u32, row).unwrap();
    }
    vectors
}

#[test]
fn search_matches_brute_force() {
    // The second case has enough rows for several threads.
    for (count, dimensions) in [(3_000, 384), (20_500, 50)] {
        let mut noise = Noise(7);
        let rows: Vec<_> = (0..count).map(|_| noise.vector(dimensions)).collect();
        let vectors = matrix(&rows);
        let (mut found, mut total) = (0, 0);
        for _ in 0..10 {
            let query = noise.vector(dimensions);
            let expected = brute_force(&rows, &query, 10, |_| true);
            let hits = vectors.search(&query, 10, None).unwrap();
            total += expected.len();
            found += hits
                .iter()
                .filter(|(id, _)| expected.iter().any(|(other, _)| other == id))
                .count();
            for (id, score) in hits {
                assert!((score - cosine(&rows[id as usize], &query)).abs() < 1e-4);
            }
        }
        assert_eq!(found, total);
    }
}

#[test]
fn applies_the_filter_before_the_limit() {
    let mut noise = Noise(3);
    let rows: Vec<_> = (0..2_000).map(|_| noise.vector(64)).collect();
    let vectors = matrix(&rows);
    let query = noise.vector(64);
    let rare = |id: u64| id % 501 == 1;
    let expected: Vec<u64> = brute_force(&rows, &query, 10, rare)
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    let found: Vec<u64> = vectors
        .search(&query, 10, Some(&|group| rare(u64::from(group))))
        .unwrap()
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 4);
    assert!(
        vectors
            .search(&query, 10, Some(&|_| false))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn adds_replaces_and_removes_rows() {
    let mut noise = Noise(5);
    let rows: Vec<_> = (0..50).map(|_| noise.vector(20)).collect();
    let mut vectors = matrix(&rows);
    let first = |vectors: &VectorMatrix, query: &[f32]| {
        vectors
            .search(query, 1, None)
            .unwrap()
            .first()
            .map(|hit| hit.0)
    };
    for id in [0, 49, 7] {
        assert!(vectors.remove(id));
        assert!(!vectors.remove(id));
        assert!(!vectors.contains(id));
    }
    assert_eq!(vectors.len(), 47);
    for id in (1..49).filter(|&id| id != 7) {
        assert_eq!(first(&vectors, &rows[id as usize]), Some(id));
    }
    vectors.put(12, 12, &rows[7]).unwrap();
    assert_eq!(vectors.len(), 47);
    assert_eq!(first(&vectors, &rows[7]), Some(12));
    for id in 0..50 {
        vectors.remove(id);
    }
    assert!(vectors.is_empty() && vectors.search(&rows[0], 5, None).unwrap().is_empty());
}

#[test]
fn ignores_the_length_of_vectors() {
    let mut vectors = VectorMatrix::new(3);
    vectors.put(1, 0, &[1e-30, 0.0, 0.0]).unwrap();
    vectors.put(2, 0, &[0.0, 1e30, 0.0]).unwrap();
    vectors.put(3, 0, &[0.0, 0.0, 0.0]).unwrap();
    let found = vectors.search(&[2.0, 1.0, 0.0], 10, None).unwrap();
    assert_eq!(found.iter().map(|hit| hit.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!((found[0].1 - 2.0 / 5.0_f32.sqrt()).abs() < 1e-4);
    assert_eq!(found[2].1, 0.0);
    assert!(vectors.search(&[0.0; 3], 10, None).unwrap().is_empty());
    assert!(vectors.search(&[1.0; 3], 0, None).unwrap().is_empty());
    assert_eq!(
        vectors.search(&[1.0; 3], usize::MAX, None).unwrap().len(),
        3
    );
}

#[test]
fn rejects_invalid_vectors() {
    let mut vectors = VectorMatrix::new(2);
    let error = VectorError::Dimensions {
        expected: 2,
        found: 3,
    };
    assert_eq!(vectors.put(1, 0, &[0.0; 3]), Err(error.clone()));
    assert_eq!(vectors.search(&[0.0; 3], 1, None), Err(error));
    for number in [f32::NAN, f32::INFINITY] {
        assert_eq!(
            vectors.put(1, 0, &[1.0, number]),
            Err(VectorError::NotFinite)
        );
    }
    assert!(vectors.is_empty());
}

#[test]
fn stored_vectors_round_trip() {
    let row = [1.5, -0.0, f32::MIN_POSITIVE, 3.0e38];
    assert_eq!(from_bytes(&to_bytes(&row)).unwrap(), row);
    assert_eq!(to_bytes(&[1.0]), [0, 0, 0x80, 0x3f]);
    assert_eq!(from_bytes(&[1, 2, 3]), Err(VectorError::Bytes(3)));
    assert_eq!(
        from_bytes(&to_bytes(&[f32::NAN])),
        Err(VectorError::NotFinite)
    );
}
