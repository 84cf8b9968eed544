//! Estimates tokens without a tokenizer: accurate enough for caps and budgets, and cheap enough for
//! every request.

/// Returns about the number of tokens that o200k would count.
pub fn estimate(text: &str) -> usize {
    let mut counter = TokenCounter::default();
    text.chars().for_each(|c| counter.push(c));
    counter.end_run();
    counter.tokens.ceil() as usize
}

/// Returns the longest prefix of `text` within `cap` tokens, truncated between words if possible.
pub fn truncate(text: &str, cap: usize) -> &str {
    if estimate(text) <= cap {
        return text;
    }
    let mut counter = TokenCounter::default();
    let (mut word_end, mut char_end) = (0, 0);
    for (at, c) in text.char_indices() {
        let mut so_far = counter.clone();
        so_far.end_run();
        if so_far.tokens.ceil() as usize > cap {
            break;
        }
        char_end = at;
        if c.is_whitespace() {
            word_end = at;
        }
        counter.push(c);
    }
    // Without white space near the end, truncate between characters.
    &text[..if word_end > char_end / 2 {
        word_end
    } else {
        char_end
    }]
}

#[derive(Clone, Copy, Default, PartialEq)]
enum CharKind {
    #[default]
    Space,
    Letters,
    Digits,
    Punctuation,
}

/// Counts tokens from the lengths of runs of the same kind of character.
#[derive(Clone, Default)]
struct TokenCounter {
    tokens: f64,
    kind: CharKind,
    run: usize,
    was_lower: bool,
}

impl TokenCounter {
    fn push(&mut self, c: char) {
        if !c.is_ascii() {
            self.end_run();
            self.tokens += if c.is_alphabetic() && c < '\u{0900}' {
                0.45
            } else {
                0.85
            };
            return;
        }
        let kind = match c {
            'a'..='z' | 'A'..='Z' => CharKind::Letters,
            '0'..='9' => CharKind::Digits,
            c if c.is_ascii_whitespace() => CharKind::Space,
            _ => CharKind::Punctuation,
        };
        // A capital letter within a word starts a new token, as in camelCase and in keys.
        let is_hump = self.was_lower && c.is_ascii_uppercase();
        if kind != self.kind || is_hump {
            self.end_run();
            self.kind = kind;
        }
        self.was_lower = c.is_ascii_lowercase();
        self.run += 1;
    }

    fn end_run(&mut self) {
        let run = self.run as f64;
        self.tokens += match self.kind {
            _ if self.run == 0 => 0.0,
            // A single space belongs to the following word; longer white space is its own token.
            CharKind::Space => {
                if self.run == 1 {
                    0.05
                } else {
                    0.5
                }
            }
            // Several capitals in a row are rarely words, and very long words are in no vocabulary.
            CharKind::Letters if !self.was_lower => (run / 3.0).max(1.0),
            CharKind::Letters if self.run > 10 => run / 5.0,
            CharKind::Letters => 1.0,
            CharKind::Digits => (run / 3.0).ceil(),
            CharKind::Punctuation => (run / 2.0).max(0.85),
        };
        self.run = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROSE: &str =
        "Keep what is known apart from what you infer, and say what you did not find. ";
    const CODE: &str = "fn main() { println!(\"{}\", 1 + 2); }\n";

    #[test]
    fn stays_close_to_a_real_tokenizer() {
        let o200k = tiktoken_rs::o200k_base().unwrap();
        let orchestrator = include_str!("../../../prompts/ORCHESTRATOR.md");
        let operator = include_str!("../../../agents/operator.md");
        let foreign = "Was frisst gerade meine Festplatte auf? 오늘 아침 여덟 시에 디스크를 확인해 줘. ディスクを確認して。";
        let numbers = "0x52908400098527886E0F7030069857D2E4169EE7 1234567 2026-11-15T08:00:00Z ";
        let listing = "-rw-r--r-- 1 root root  2573000 Nov 15 21:36 lango\ndrwxr-xr-x 8 root root     4096 Nov 15 21:03 .cargo\n";
        let json = r#"{"agentName":"operator","reportBack":true,"items":[{"id":17,"pathSegments":["src","mainModule.rs"]}]}"#;
        let german = "Donaudampfschifffahrtsgesellschaftskapitän und Rechtsschutzversicherungsgesellschaften beantragen Grundstücksverkehrsgenehmigungen.";
        let base64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4ypbHqGC0H0+tG3a";
        let camel = "getUserAccountBalanceFromRemoteServiceOrDefault setPaymentProviderConfigurationHandler";
        for text in [
            PROSE,
            CODE,
            orchestrator,
            operator,
            foreign,
            numbers,
            listing,
            json,
            german,
            base64,
            camel,
        ] {
            let real = o200k.encode_ordinary(text).len() as f64;
            let ratio = estimate(text) as f64 / real;
            assert!(
                (0.65..1.6).contains(&ratio),
                "{ratio:.2} of {real} for {text:.40}"
            );
        }
    }

    #[test]
    fn truncation_keeps_whole_words_within_the_cap() {
        let long = PROSE.repeat(50);
        let short = truncate(&long, 100);
        assert!(estimate(short) <= 100 && estimate(short) > 80);
        assert!(long[short.len()..].starts_with(' '));
        assert_eq!(truncate("short", 100), "short");
        assert_eq!(truncate("", 0), "");
        let unbroken = "가나다라".repeat(5_000);
        assert!(estimate(truncate(&unbroken, 100)) > 90);
    }
}
