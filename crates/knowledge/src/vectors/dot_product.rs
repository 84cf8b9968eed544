//! The products of the scan, with the widest instructions that the machine has.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a function for newer processors may only be called after asking for them"
    )
)]

/// The products of a query with rows that stand one after another. The query is widened beforehand, because it is
/// read for every row.
pub(super) fn dot_products(query: &[i16], rows: &[i8], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions; the function itself is safe.
        return unsafe { dot_products_avx2(query, rows, out) };
    }
    dot_products_portable(query, rows, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_products_avx2(query: &[i16], rows: &[i8], out: &mut [i32]) {
    dot_products_portable(query, rows, out);
}

/// Written so that a compiler makes vector instructions of it, whatever they are.
#[inline(always)]
fn dot_products_portable(query: &[i16], rows: &[i8], out: &mut [i32]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(out) {
        let pairs = query.iter().zip(row);
        *product = pairs
            .map(|(&query, &row)| i32::from(query) * i32::from(i16::from(row)))
            .sum();
    }
}
