//! Dot products for the scan, with AVX2 instructions where available.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a function with a target feature may only be called after checking for the feature"
    )
)]

/// Computes the dot products of a query with consecutive rows. The query is widened to 16 bits by
/// the caller, because it is read for every row.
pub(super) fn dot_products(query: &[i16], rows: &[i8], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the check above guarantees AVX2; the function itself is safe.
        return unsafe { dot_products_avx2(query, rows, out) };
    }
    dot_products_portable(query, rows, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_products_avx2(query: &[i16], rows: &[i8], out: &mut [i32]) {
    dot_products_portable(query, rows, out);
}

/// Written so that the compiler vectorizes it for the enabled target features.
#[inline(always)]
fn dot_products_portable(query: &[i16], rows: &[i8], out: &mut [i32]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(out) {
        let pairs = query.iter().zip(row);
        *product = pairs
            .map(|(&query, &row)| i32::from(query) * i32::from(i16::from(row)))
            .sum();
    }
}
