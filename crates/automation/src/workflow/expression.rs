//! The expression language of `if`: comparisons of values, no code.
//!
//! ```text
//! or       = and { ("or" | "||") and }
//! and      = not { ("and" | "&&") not }
//! not      = ("not" | "!") not | compare
//! compare  = value [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "in" | "not in") value ]
//! value    = text | number | "true" | "false" | "null" | list | reference | "(" or ")"
//! list     = "[" [ value { "," value } ] "]"
//! ```

mod evaluate;
mod lexer;
mod parser;
mod types;

pub use evaluate::{EvaluationError, evaluate};
pub use parser::{RESERVED_WORDS, parse_expression};
pub use types::{TypeContext, ValueType, check_types};

use serde_json::Value;

use super::reference::Reference;

/// The longest expression, in characters.
pub const MAX_EXPRESSION_CHARS: usize = 1_000;
/// The deepest nesting of parentheses, lists and negations.
pub const MAX_EXPRESSION_DEPTH: usize = 24;

/// A part of an expression, with the byte offset at which it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub offset: usize,
    pub kind: ExpressionKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    Literal(Value),
    List(Vec<Expression>),
    Reference(Reference),
    Not(Box<Expression>),
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    In,
}

impl BinaryOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Contains => "contains",
            Self::In => "in",
        }
    }
}

/// An error in an expression, with its byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    pub offset: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl ExpressionError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            hint: None,
        }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Expression {
    /// Calls `visit` with every reference and its offset.
    pub fn for_each_reference<'a>(&'a self, visit: &mut dyn FnMut(&'a Reference, usize)) {
        match &self.kind {
            ExpressionKind::Reference(reference) => visit(reference, self.offset),
            ExpressionKind::Literal(_) => {}
            ExpressionKind::List(items) => items
                .iter()
                .for_each(|item| item.for_each_reference(&mut *visit)),
            ExpressionKind::Not(inner) => inner.for_each_reference(visit),
            ExpressionKind::Binary(_, left, right) => {
                left.for_each_reference(&mut *visit);
                right.for_each_reference(visit);
            }
        }
    }
}
