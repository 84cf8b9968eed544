//! N-Triples. Names that are not IRIs are written as `urn:lango:…`. Literals become names whose type
//! records the datatype or language. Validity, properties and sources are not represented.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{FactLine, FactLineError};

const URN_PREFIX: &str = "urn:lango:";
const LITERAL_TYPE: &str = "literal";
pub const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

pub fn parse_line(text: &str) -> Result<Option<FactLine<'_>>, FactLineError> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (subject, rest) = parse_node(text)?;
    let (predicate, rest) = parse_iri(rest.trim_start())?;
    let rest = rest.trim_start();
    let (object, object_type, rest) = match rest.starts_with('"') {
        true => parse_literal(rest)?,
        false => parse_node(rest).map(|(object, rest)| (object, Cow::Borrowed(""), rest))?,
    };
    let end = rest.trim_start().strip_prefix('.').map(str::trim_start);
    match end {
        Some(end) if end.is_empty() || end.starts_with('#') => {}
        _ => return Err(FactLineError::Triple("expected `.` at the end")),
    }
    Ok(Some(FactLine {
        subject,
        predicate,
        object,
        object_type,
        ..FactLine::default()
    }))
}

fn parse_node(text: &str) -> Result<(Cow<'_, str>, &str), FactLineError> {
    if !text.starts_with("_:") {
        return parse_iri(text);
    }
    let end = text
        .find(char::is_whitespace)
        .ok_or(FactLineError::Triple("the line ends too early"))?;
    Ok((Cow::Borrowed(&text[..end]), &text[end..]))
}

fn parse_iri(text: &str) -> Result<(Cow<'_, str>, &str), FactLineError> {
    let inside = text
        .strip_prefix('<')
        .ok_or(FactLineError::Triple("expected `<` before an IRI"))?;
    let end = inside
        .find('>')
        .ok_or(FactLineError::Triple("expected `>` after an IRI"))?;
    let (iri, rest) = (unescape(&inside[..end])?, &inside[end + 1..]);
    let name = match iri.strip_prefix(URN_PREFIX) {
        Some(name) => Cow::Owned(percent_decode(name)?),
        None => iri,
    };
    Ok((name, rest))
}

/// Returns the text of a literal, its type, and the rest of the line.
fn parse_literal(text: &str) -> Result<(Cow<'_, str>, Cow<'_, str>, &str), FactLineError> {
    let inside = &text[1..];
    let mut is_escaped = false;
    let end = inside.find(|c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    let end = end.ok_or(FactLineError::Triple("expected `\"` after a literal"))?;
    let (value, rest) = (unescape(&inside[..end])?, &inside[end + 1..]);
    if let Some(typed) = rest.strip_prefix("^^") {
        let (kind, rest) = parse_iri(typed)?;
        return Ok((value, Cow::Owned(format!("{LITERAL_TYPE}^^{kind}")), rest));
    }
    if let Some(language) = rest.strip_prefix('@') {
        let end = language
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(language.len());
        return Ok((
            value,
            Cow::Owned(format!("{LITERAL_TYPE}@{}", &language[..end])),
            &language[end..],
        ));
    }
    Ok((value, Cow::Borrowed(LITERAL_TYPE), rest))
}

fn unescape(text: &str) -> Result<Cow<'_, str>, FactLineError> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text));
    }
    let invalid_escape = FactLineError::Triple("invalid escape sequence");
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let mut after = rest[at + 1..].chars();
        let digits = match after.next().ok_or(invalid_escape.clone())? {
            't' => (plain.push('\t'), 0).1,
            'n' => (plain.push('\n'), 0).1,
            'r' => (plain.push('\r'), 0).1,
            'b' | 'f' => (plain.push(' '), 0).1,
            c @ ('"' | '\'' | '\\') => (plain.push(c), 0).1,
            'u' => 4,
            'U' => 8,
            _ => return Err(invalid_escape),
        };
        rest = after.as_str();
        if digits > 0 {
            let code = rest
                .get(..digits)
                .and_then(|code| u32::from_str_radix(code, 16).ok());
            plain.push(
                code.and_then(char::from_u32)
                    .ok_or(invalid_escape.clone())?,
            );
            rest = &rest[digits..];
        }
    }
    plain.push_str(rest);
    Ok(Cow::Owned(plain))
}

fn percent_decode(name: &str) -> Result<String, FactLineError> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, after) {
            (b'%', [high, low, ..]) => {
                let byte = hex(&[*high, *low]);
                bytes.push(byte.ok_or(FactLineError::Triple("invalid escape sequence"))?);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| FactLineError::NotUtf8)
}

/// Formats a triple as a line without the line break.
pub fn triple_line(subject: &str, predicate: &str, object: &str, object_type: &str) -> String {
    let object = match object_type.strip_prefix(LITERAL_TYPE) {
        Some("") => quote_literal(object),
        Some(language) if is_language(language) => format!("{}{language}", quote_literal(object)),
        Some(kind) if kind.starts_with("^^") => {
            format!("{}^^{}", quote_literal(object), format_node(&kind[2..]))
        }
        _ => format_node(object),
    };
    format!(
        "{} {} {object} .",
        format_node(subject),
        format_iri(predicate)
    )
}

pub fn is_literal(object_type: &str) -> bool {
    let rest = object_type.strip_prefix(LITERAL_TYPE);
    rest.is_some_and(|rest| rest.is_empty() || is_language(rest) || rest.starts_with("^^"))
}

fn is_language(text: &str) -> bool {
    let tag = text.strip_prefix('@').unwrap_or_default();
    !tag.is_empty()
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn quote_literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn format_node(name: &str) -> String {
    let label = name.strip_prefix("_:").unwrap_or_default();
    let is_blank = label.starts_with(char::is_alphanumeric)
        && label.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_blank {
        name.to_owned()
    } else {
        format_iri(name)
    }
}

fn format_iri(name: &str) -> String {
    if is_iri(name) && !name.starts_with(URN_PREFIX) {
        return format!("<{name}>");
    }
    let mut iri = format!("<{URN_PREFIX}");
    for c in name.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') {
            iri.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            let _ = write!(iri, "%{byte:02X}");
        }
    }
    iri.push('>');
    iri
}

fn is_iri(name: &str) -> bool {
    let Some((scheme, rest)) = name.split_once(':') else {
        return false;
    };
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "<>\"{}|^`\\".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !rest.is_empty()
        && !rest.contains(is_odd)
}
