//! Parses expressions by recursive descent, with a limit of depth.

use serde_json::{Number, Value};

use super::super::reference::Reference;
use super::lexer::{Token, tokens};
use super::{
    BinaryOperator, Expression, ExpressionError, ExpressionKind, MAX_EXPRESSION_CHARS,
    MAX_EXPRESSION_DEPTH,
};

/// Words with a meaning of their own; steps cannot have these names.
pub const RESERVED_WORDS: [&str; 9] = [
    "params", "and", "or", "not", "in", "contains", "true", "false", "null",
];

pub fn parse_expression(text: &str) -> Result<Expression, ExpressionError> {
    if text.chars().count() > MAX_EXPRESSION_CHARS {
        let message = format!("the expression has more than {MAX_EXPRESSION_CHARS} characters");
        return Err(ExpressionError::new(0, message)
            .with_hint("let a step decide, and compare its result here"));
    }
    let mut parser = ExpressionParser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
        end: text.len(),
    };
    if parser.tokens.is_empty() {
        return Err(ExpressionError::new(0, "the expression is empty")
            .with_hint("leave `if` out, or write a comparison"));
    }
    let expression = parser.or()?;
    match parser.tokens.get(parser.next) {
        None => Ok(expression),
        Some((offset, token)) => Err(unexpected(*offset, token)),
    }
}

fn unexpected(offset: usize, token: &Token) -> ExpressionError {
    let message = format!("{} is not expected here", token.describe());
    ExpressionError::new(offset, message)
        .with_hint("join comparisons with `and` or `or`, and put texts into quotes")
}

struct ExpressionParser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    end: usize,
}

impl ExpressionParser {
    fn or(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.and()?;
        while self.take(&["or", "||"]) {
            left = binary(BinaryOperator::Or, left, self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.not()?;
        while self.take(&["and", "&&"]) {
            left = binary(BinaryOperator::And, left, self.not()?);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, ExpressionError> {
        let offset = self.offset();
        if !self.take(&["not", "!"]) {
            return self.compare();
        }
        let inner = self.nested(Self::not)?;
        Ok(negate(offset, inner))
    }

    fn compare(&mut self) -> Result<Expression, ExpressionError> {
        let left = self.value()?;
        let Some((operator, is_negated)) = self.take_comparison() else {
            return Ok(left);
        };
        let right = self.value()?;
        let offset = left.offset;
        let compared = binary(operator, left, right);
        if let Some((offset, _)) = self.tokens.get(self.next).cloned()
            && self.take_comparison().is_some()
        {
            let hint = "write `a < b and b < c`";
            return Err(
                ExpressionError::new(offset, "comparisons cannot be chained").with_hint(hint),
            );
        }
        Ok(if is_negated {
            negate(offset, compared)
        } else {
            compared
        })
    }

    /// Takes a comparison operator; true with it for `not in`.
    fn take_comparison(&mut self) -> Option<(BinaryOperator, bool)> {
        use BinaryOperator::{
            Contains, Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual, NotEqual,
        };
        let operators = [
            (["==", "=="], Equal),
            (["!=", "!="], NotEqual),
            (["<=", "<="], LessOrEqual),
            ([">=", ">="], GreaterOrEqual),
            (["<", "<"], Less),
            ([">", ">"], Greater),
            (["contains", "contains"], Contains),
            (["in", "in"], In),
        ];
        for (spellings, operator) in operators {
            if self.take(&spellings) {
                return Some((operator, false));
            }
        }
        let is_not_in = self.is_at(self.next, "not") && self.is_at(self.next + 1, "in");
        if is_not_in {
            self.next += 2;
        }
        is_not_in.then_some((In, true))
    }

    fn value(&mut self) -> Result<Expression, ExpressionError> {
        let offset = self.offset();
        let Some((_, token)) = self.tokens.get(self.next).cloned() else {
            let error = ExpressionError::new(self.end, "the expression ends too early");
            return Err(error.with_hint("add what the last operator compares with"));
        };
        self.next += 1;
        let kind = match &token {
            Token::Text(text) => ExpressionKind::Literal(Value::from(text.as_str())),
            Token::Number(number) => {
                let number = Number::from_f64(*number).map_or(Value::Null, Value::Number);
                ExpressionKind::Literal(number)
            }
            Token::Symbol("(") => {
                let inner = self.nested(Self::or)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("[") => ExpressionKind::List(self.nested(Self::items)?),
            Token::Name(name) => name_value(offset, name)?,
            Token::Symbol(_) => return Err(unexpected(offset, &token)),
        };
        Ok(Expression { offset, kind })
    }

    /// Parses the values of a list up to and including `]`.
    fn items(&mut self) -> Result<Vec<Expression>, ExpressionError> {
        let mut items = Vec::new();
        if self.take(&["]"]) {
            return Ok(items);
        }
        loop {
            items.push(self.value()?);
            if !self.take(&[","]) {
                self.expect("]")?;
                return Ok(items);
            }
        }
    }

    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_EXPRESSION_DEPTH {
            let message =
                format!("the expression is nested more than {MAX_EXPRESSION_DEPTH} levels deep");
            return Err(ExpressionError::new(self.offset(), message));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ExpressionError> {
        if self.take(&[symbol]) {
            return Ok(());
        }
        let message = format!("`{symbol}` is missing");
        Err(ExpressionError::new(self.offset(), message).with_hint(format!("add `{symbol}`")))
    }

    fn take(&mut self, spellings: &[&str]) -> bool {
        let found = spellings
            .iter()
            .any(|spelling| self.is_at(self.next, spelling));
        self.next += usize::from(found);
        found
    }

    fn is_at(&self, position: usize, spelling: &str) -> bool {
        match self.tokens.get(position) {
            Some((_, Token::Symbol(symbol))) => *symbol == spelling,
            Some((_, Token::Name(name))) => name == spelling,
            _ => false,
        }
    }

    fn offset(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.end, |(offset, _)| *offset)
    }
}

fn name_value(offset: usize, name: &str) -> Result<ExpressionKind, ExpressionError> {
    Ok(match name {
        "true" => ExpressionKind::Literal(Value::Bool(true)),
        "false" => ExpressionKind::Literal(Value::Bool(false)),
        "null" => ExpressionKind::Literal(Value::Null),
        _ => {
            let reference = Reference::parse(name).map_err(|error| {
                let hint = match name.contains('.') {
                    true => error.hint.unwrap_or_default(),
                    false => format!(
                        "put a text into quotes: '{name}'; or write `params.{name}` or `{name}.result`"
                    ),
                };
                ExpressionError::new(offset, error.message).with_hint(hint)
            })?;
            ExpressionKind::Reference(reference)
        }
    })
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression {
        offset: left.offset,
        kind: ExpressionKind::Binary(operator, Box::new(left), Box::new(right)),
    }
}

fn negate(offset: usize, inner: Expression) -> Expression {
    Expression {
        offset,
        kind: ExpressionKind::Not(Box::new(inner)),
    }
}
