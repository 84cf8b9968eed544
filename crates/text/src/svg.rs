//! Text in SVG images.

/// Escapes text for XML. Characters that XML does not allow are left out.
pub fn escape_xml(text: &str) -> String {
    let allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().filter(allowed) {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// Estimates the width of a text in a typical font.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | '\'' | ' ' => 0.34,
        'm' | 'w' | 'M' | 'W' => 0.86,
        'A'..='Z' => 0.68,
        '\u{300}'..='\u{36f}' => 0.0,
        '\u{1100}'.. => 1.0,
        _ => 0.57,
    };
    text.chars().map(width).sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_control_characters_go() {
        assert_eq!(
            escape_xml("<a href=\"x\">'&'\u{7}\u{fffe}</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"
        );
    }

    #[test]
    fn wide_letters_take_more_room() {
        assert!(text_width("WWW", 12.0) > text_width("iii", 12.0));
        assert!(text_width("漢字", 12.0) > text_width("ab", 12.0));
    }
}
