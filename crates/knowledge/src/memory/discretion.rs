//! What is never remembered.

/// Whether a text seems to hold a key, a password or a private key.
pub fn holds_secret(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["sk-", "ghp_", "github_pat_", "xoxb-", "AKIA", "AIza", "glpat-", "eyJhbGciOi"];
    const WORDS: [&str; 8] = [
        "password",
        "passwort",
        "passphrase",
        "seed phrase",
        "api key",
        "private key",
        "비밀번호",
        "パスワード",
    ];
    let lower = text.to_lowercase();
    let is_key = |word: &str| {
        BEGINNINGS.iter().any(|beginning| word.starts_with(beginning) && word.len() >= beginning.len() + 12)
    };
    text.contains("PRIVATE KEY-----")
        || WORDS.iter().any(|word| lower.contains(word))
        || text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ':' | '`')).any(is_key)
}
