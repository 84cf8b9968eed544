/// Returns a non-cryptographic hash of `bytes`; it does not resist deliberate collisions.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, &word| {
        step(sum, u64::from_le_bytes(word))
    });
    rest.iter()
        .fold(sum, |sum, &byte| step(sum, u64::from(byte)))
}
