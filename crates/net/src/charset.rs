//! Decodes a page to text. The charset comes from the byte order mark, the server's header or the
//! page's own declaration, in this order; the default is UTF-8.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes at the start of a page in which a charset declaration is searched.
const CHARSET_SCAN_BYTES: usize = 1024;

/// Decodes a page; invalid bytes become `�`.
pub fn decode(bytes: &[u8], header_charset: Option<&str>) -> String {
    let from_header = header_charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = from_header
        .or_else(|| declared_encoding(bytes))
        .unwrap_or(UTF_8);
    // A byte order mark wins over both, as in browsers.
    encoding.decode(bytes).0.into_owned()
}

/// Returns the charset of `<meta charset="x">`, `<meta … content="text/html; charset=x">` or
/// `<?xml … encoding="x"?>`.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start: Vec<u8> = bytes
        .iter()
        .take(CHARSET_SCAN_BYTES)
        .map(u8::to_ascii_lowercase)
        .collect();
    let start = String::from_utf8_lossy(&start);
    if !start.trim_start().starts_with('<') {
        return None;
    }
    let label = ["charset", "encoding"]
        .into_iter()
        .find_map(|word| label_after(&start, word))?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // The declaration was readable as ASCII, so the page cannot be UTF-16.
    Some(if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else {
        encoding
    })
}

fn label_after<'a>(start: &'a str, word: &str) -> Option<&'a str> {
    let value = start.match_indices(word).find_map(|(at, _)| {
        start[at + word.len()..]
            .trim_start()
            .strip_prefix('=')
            .map(str::trim_start)
    })?;
    let value = value.trim_start_matches(['"', '\'']);
    let end = value
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
        .unwrap_or(value.len());
    (end > 0).then_some(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_declared_charsets() {
        let shift_jis = b"\x93\xfa\x96\x7b";
        assert_eq!(decode(shift_jis, Some("Shift_JIS")), "日本");
        assert_eq!(decode(b"caf\xe9 \x80", Some("windows-1252")), "café €");
        assert_eq!(
            decode(b"<meta charset=\"windows-1252\">\x80", None),
            "<meta charset=\"windows-1252\">€"
        );
        let old =
            b"<META http-equiv=Content-Type content='text/html; charset = shift_jis'>\x93\xfa";
        assert!(decode(old, None).ends_with('日'));
        assert!(decode(b"<?xml version='1.0' encoding='ISO-8859-1'?>\xe9", None).ends_with('é'));
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9", Some("windows-1252")), "é");
        assert_eq!(decode(b"\xff\xfea\0", None), "a");
    }

    #[test]
    fn defaults_to_utf_8() {
        assert_eq!(decode("é".as_bytes(), None), "é");
        assert_eq!(decode(b"a\xffb", None), "a\u{fffd}b");
        assert_eq!(decode(b"a\xffb", Some("no-such-charset")), "a\u{fffd}b");
        assert_eq!(
            decode(b"charset=windows-1252 \x80", None),
            "charset=windows-1252 \u{fffd}"
        );
        assert_eq!(
            decode(b"<meta charset=utf-16>x", None),
            "<meta charset=utf-16>x"
        );
    }
}
