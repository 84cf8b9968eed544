//! Types of expressions, checked before a workflow runs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::reference::{Reference, ReferenceSource, StepField};
use super::{BinaryOperator, Expression, ExpressionError, ExpressionKind};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Known only when the workflow runs.
    Any,
    Null,
    Boolean,
    Number,
    String,
    List,
    Object,
}

impl ValueType {
    /// The types that a parameter can declare.
    pub const DECLARABLE: [(&str, Self); 6] = [
        ("any", Self::Any),
        ("boolean", Self::Boolean),
        ("number", Self::Number),
        ("string", Self::String),
        ("list", Self::List),
        ("object", Self::Object),
    ];

    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }

    fn may_be(self, other: Self) -> bool {
        self == Self::Any || other == Self::Any || self == other
    }
}

/// Formats the type with its article, for messages.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any value",
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// The knowledge of the type check about a workflow.
pub trait TypeContext {
    /// The type of a parameter; `Any` for unknown ones, which another check reports.
    fn param_type(&self, name: &str) -> ValueType;
    /// The states that a step can be in when others read it.
    fn state_names(&self) -> &[&str];
}

/// Checks a condition. Returns every error.
pub fn check_types(condition: &Expression, context: &dyn TypeContext) -> Vec<ExpressionError> {
    let mut check = TypeCheck {
        context,
        errors: Vec::new(),
    };
    let found = check.type_of(condition);
    if found != ValueType::Boolean && check.errors.is_empty() {
        let message = format!("the condition is {found}, not true or false");
        let error = ExpressionError::new(condition.offset, message);
        check
            .errors
            .push(error.with_hint("compare the value, as in `build.result != ''`"));
    }
    check.errors
}

struct TypeCheck<'a> {
    context: &'a dyn TypeContext,
    errors: Vec<ExpressionError>,
}

impl TypeCheck<'_> {
    fn type_of(&mut self, expression: &Expression) -> ValueType {
        match &expression.kind {
            ExpressionKind::Literal(value) => ValueType::of(value),
            ExpressionKind::List(items) => {
                items.iter().for_each(|item| {
                    self.type_of(item);
                });
                ValueType::List
            }
            ExpressionKind::Reference(reference) => self.reference_type(reference),
            ExpressionKind::Not(inner) => {
                self.expect_boolean(inner, "not");
                ValueType::Boolean
            }
            ExpressionKind::Binary(operator, left, right) => {
                self.check_operands(*operator, left, right);
                ValueType::Boolean
            }
        }
    }

    fn reference_type(&self, reference: &Reference) -> ValueType {
        match &reference.source {
            _ if !reference.path.is_empty() => ValueType::Any,
            ReferenceSource::Param(name) => self.context.param_type(name),
            ReferenceSource::Step { field, .. } => match field {
                StepField::State => ValueType::String,
                StepField::Result | StepField::Error => ValueType::Any,
            },
        }
    }

    fn expect_boolean(&mut self, expression: &Expression, operator: &str) {
        let found = self.type_of(expression);
        if found != ValueType::Boolean {
            let message = format!("`{operator}` needs true or false, not {found}");
            let error = ExpressionError::new(expression.offset, message);
            self.errors
                .push(error.with_hint("compare the value first, as in `build.result != ''`"));
        }
    }

    fn check_operands(&mut self, operator: BinaryOperator, left: &Expression, right: &Expression) {
        use BinaryOperator::{And, Contains, Equal, In, NotEqual, Or};
        if matches!(operator, And | Or) {
            self.expect_boolean(left, operator.symbol());
            self.expect_boolean(right, operator.symbol());
            return;
        }
        let (a, b) = (self.type_of(left), self.type_of(right));
        let is_valid = match operator {
            Equal | NotEqual => a.may_be(b) || a == ValueType::Null || b == ValueType::Null,
            Contains => is_container(a, b),
            In => is_container(b, a),
            _ => a.may_be(b) && is_ordered(a) && is_ordered(b),
        };
        if !is_valid {
            let message = format!("`{}` cannot compare {a} with {b}", operator.symbol());
            let error = ExpressionError::new(left.offset, message);
            let hint = match operator {
                Contains | In => "look for a text in a text, or for a value in a list",
                Equal | NotEqual => "compare values of the same type",
                _ => "compare two numbers or two texts",
            };
            self.errors.push(error.with_hint(hint));
        }
        self.check_state_name(left, right);
        self.check_state_name(right, left);
    }

    /// Reports a comparison of a step's state with a text that is no state.
    fn check_state_name(&mut self, state: &Expression, other: &Expression) {
        let ExpressionKind::Reference(reference) = &state.kind else {
            return;
        };
        let is_state = matches!(
            reference.source,
            ReferenceSource::Step {
                field: StepField::State,
                ..
            }
        );
        let names = self.context.state_names();
        let texts = match &other.kind {
            ExpressionKind::List(items) => items.iter().collect(),
            _ => vec![other],
        };
        for text in texts {
            if let ExpressionKind::Literal(Value::String(name)) = &text.kind
                && is_state
                && !names.contains(&name.as_str())
            {
                let near = lango_text::suggest::did_you_mean(name, names.iter().copied());
                let message = format!("`{name}` is not a state that another step can read");
                let error = ExpressionError::new(text.offset, message);
                let hint = near.unwrap_or_else(|| format!("states are {}", names.join(", ")));
                self.errors.push(error.with_hint(hint));
            }
        }
    }
}

fn is_ordered(kind: ValueType) -> bool {
    matches!(kind, ValueType::Any | ValueType::Number | ValueType::String)
}

fn is_container(container: ValueType, item: ValueType) -> bool {
    match container {
        ValueType::Any | ValueType::List => true,
        ValueType::String | ValueType::Object => item.may_be(ValueType::String),
        _ => false,
    }
}
