//! Evaluates expressions. Types that are known only now are checked now.

use std::cmp::Ordering;

use serde_json::Value;

use super::super::reference::{ReferenceValues, resolve};
use super::types::ValueType;
use super::{BinaryOperator, Expression, ExpressionKind};

/// A condition that has no answer, because a value has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the condition cannot be decided: {0}")]
pub struct EvaluationError(String);

/// Evaluates a condition. A missing value is `null`.
pub fn evaluate(
    condition: &Expression,
    values: &dyn ReferenceValues,
) -> Result<bool, EvaluationError> {
    match value_of(condition, values)? {
        Value::Bool(answer) => Ok(answer),
        other => Err(EvaluationError(format!(
            "it is {}, not true or false",
            ValueType::of(&other)
        ))),
    }
}

fn value_of(
    expression: &Expression,
    values: &dyn ReferenceValues,
) -> Result<Value, EvaluationError> {
    match &expression.kind {
        ExpressionKind::Literal(value) => Ok(value.clone()),
        ExpressionKind::List(items) => items.iter().map(|item| value_of(item, values)).collect(),
        ExpressionKind::Reference(reference) => {
            Ok(resolve(reference, values).unwrap_or(Value::Null))
        }
        ExpressionKind::Not(inner) => Ok(Value::Bool(!evaluate(inner, values)?)),
        ExpressionKind::Binary(operator, left, right) => {
            binary(*operator, left, right, values).map(Value::Bool)
        }
    }
}

fn binary(
    operator: BinaryOperator,
    left: &Expression,
    right: &Expression,
    values: &dyn ReferenceValues,
) -> Result<bool, EvaluationError> {
    match operator {
        BinaryOperator::And => return Ok(evaluate(left, values)? && evaluate(right, values)?),
        BinaryOperator::Or => return Ok(evaluate(left, values)? || evaluate(right, values)?),
        _ => {}
    }
    let (a, b) = (value_of(left, values)?, value_of(right, values)?);
    let order = || {
        order(&a, &b).ok_or_else(|| {
            let (a, b) = (ValueType::of(&a), ValueType::of(&b));
            EvaluationError(format!(
                "`{}` cannot compare {a} with {b}",
                operator.symbol()
            ))
        })
    };
    match operator {
        BinaryOperator::NotEqual => Ok(!is_equal(&a, &b)),
        BinaryOperator::Less => Ok(order()? == Ordering::Less),
        BinaryOperator::LessOrEqual => Ok(order()? != Ordering::Greater),
        BinaryOperator::Greater => Ok(order()? == Ordering::Greater),
        BinaryOperator::GreaterOrEqual => Ok(order()? != Ordering::Less),
        BinaryOperator::Contains => contains(&a, &b),
        BinaryOperator::In => contains(&b, &a),
        _ => Ok(is_equal(&a, &b)),
    }
}

/// Compares values. Results of tools are texts, so a text is read as a number or a boolean if it is
/// compared with one.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), _) | (_, Value::Number(_)) => {
            matches!((number(a), number(b)), (Some(a), Some(b)) if a == b)
        }
        (Value::String(text), Value::Bool(flag)) | (Value::Bool(flag), Value::String(text)) => {
            text.trim() == flag.to_string()
        }
        _ => a == b,
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|n: &f64| n.is_finite()),
        _ => None,
    }
}

fn contains(container: &Value, item: &Value) -> Result<bool, EvaluationError> {
    match (container, item) {
        (Value::Null, _) => Ok(false),
        (Value::Array(items), _) => Ok(items.iter().any(|found| is_equal(found, item))),
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::Object(map), Value::String(key)) => Ok(map.contains_key(key)),
        _ => Err(EvaluationError(format!(
            "{} cannot be looked for in {}",
            ValueType::of(item),
            ValueType::of(container)
        ))),
    }
}
