//! Splits an expression into tokens.

use super::ExpressionError;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Name(String),
    Text(String),
    Number(f64),
    Symbol(&'static str),
}

impl Token {
    pub fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Text(_) => "a text".to_owned(),
            Self::Number(number) => format!("`{number}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
        }
    }
}

/// Longer symbols first.
const SYMBOLS: [&str; 14] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ",",
];

/// Returns the tokens with their byte offsets.
pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, length) = if c == '\'' || c == '"' {
            quoted(rest, c).map_err(|message| {
                ExpressionError::new(at, message).with_hint("write texts as 'text' or \"text\"")
            })?
        } else if c.is_ascii_digit() || (c == '-' && starts_with_digit(&rest[1..])) {
            number(rest).map_err(|message| ExpressionError::new(at, message))?
        } else if c.is_alphabetic() || c == '_' {
            let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
            let length = rest.find(is_end).unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else {
            symbol(at, rest)?
        };
        found.push((at, token));
        at += length;
    }
    Ok(found)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn quoted(rest: &str, quote: char) -> Result<(Token, usize), &'static str> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((Token::Text(text), at + c.len_utf8()));
        }
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next().map(|(_, escaped)| escaped) {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some(escaped @ ('\\' | '\'' | '"')) => text.push(escaped),
            _ => return Err("after `\\` only `n`, `t`, `\\` and quotes are possible"),
        }
    }
    Err("the text has no closing quote")
}

fn number(rest: &str) -> Result<(Token, usize), String> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    let length = rest.find(is_end).unwrap_or(rest.len());
    let text = &rest[..length];
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| (Token::Number(number), length))
        .ok_or_else(|| format!("`{text}` is not a number"))
}

fn symbol(at: usize, rest: &str) -> Result<(Token, usize), ExpressionError> {
    if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
        return Ok((Token::Symbol(symbol), symbol.len()));
    }
    let error = |message: &str, hint: &str| ExpressionError::new(at, message).with_hint(hint);
    Err(match rest.chars().next() {
        Some('=') => error("`=` is no operator", "compare with `==`"),
        Some('&') => error("`&` is no operator", "write `and`"),
        Some('|') => error("`|` is no operator", "write `or`"),
        Some('{') => error(
            "braces do not belong into an expression",
            "write the name alone, such as `build.result`",
        ),
        Some('+' | '-' | '*' | '/' | '%') => error(
            "expressions do not calculate",
            "compare values with `==`, `!=`, `<`, `<=`, `>`, `>=`, `contains` or `in`",
        ),
        Some(c) => ExpressionError::new(at, format!("`{c}` has no meaning here")),
        None => ExpressionError::new(at, "the expression ends too early"),
    })
}
