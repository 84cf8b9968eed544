//! The arguments of calls: their schema, and reading them.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ToolError;

pub(super) fn parse_args<Args: DeserializeOwned>(args: Value) -> Result<Args, ToolError> {
    serde_path_to_error::deserialize(args)
        .map_err(|error| ToolError(format!("argument `{}`: {}", error.path(), error.inner())))
}

pub(super) fn parameters_schema<Args: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<Args>();
    schema.remove("title");
    schema.to_value()
}
