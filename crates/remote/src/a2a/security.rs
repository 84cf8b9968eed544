//! Security schemes of agent cards.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, missing};
use super::version::WireFormat;

/// An authentication method.
#[derive(Clone, Debug, PartialEq)]
pub enum SecurityScheme {
    ApiKey {
        location: ApiKeyLocation,
        name: String,
    },
    /// `Authorization: {scheme} …`.
    Http {
        scheme: String,
    },
    /// The flows as raw JSON.
    OAuth2 {
        flows: Value,
    },
    OpenIdConnect {
        url: String,
    },
    MutualTls,
    /// An unsupported kind.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKeyLocation {
    Header,
    Query,
    Cookie,
}

impl ApiKeyLocation {
    fn parse(text: &str) -> Option<Self> {
        [Self::Header, Self::Query, Self::Cookie]
            .into_iter()
            .find(|location| location.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Query => "query",
            Self::Cookie => "cookie",
        }
    }
}

impl SecurityScheme {
    /// Parses both forms: 0.3 has a `type`, 1.0 a field named after the kind.
    pub(crate) fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        const V1_FIELDS: [(&str, &str); 5] = [
            ("apiKey", "apiKeySecurityScheme"),
            ("http", "httpAuthSecurityScheme"),
            ("oauth2", "oauth2SecurityScheme"),
            ("openIdConnect", "openIdConnectSecurityScheme"),
            ("mutualTLS", "mtlsSecurityScheme"),
        ];
        for (kind, name) in V1_FIELDS {
            if let Some(scheme) = fields.nested(name, |value, wire| {
                Self::from_kind(kind, JsonFields::from_value(value, wire)?)
            })? {
                return Ok(scheme);
            }
        }
        let kind = fields.text("type")?.ok_or_else(|| missing("type"))?;
        Self::from_kind(kind, fields)
    }

    fn from_kind(kind: &str, fields: JsonFields<'_>) -> Result<Self, FieldError> {
        Ok(match kind {
            "apiKey" => {
                let location = fields
                    .text("in")?
                    .or(fields.text("location")?)
                    .unwrap_or("header");
                Self::ApiKey {
                    location: ApiKeyLocation::parse(location)
                        .ok_or_else(|| FieldError::at("in", "must be header, query or cookie"))?,
                    name: fields.required("name")?,
                }
            }
            "http" => Self::Http {
                scheme: fields.required("scheme")?,
            },
            "oauth2" => Self::OAuth2 {
                flows: fields.get("flows").cloned().unwrap_or_default(),
            },
            "openIdConnect" => Self::OpenIdConnect {
                url: fields.required("openIdConnectUrl")?,
            },
            "mutualTLS" => Self::MutualTls,
            other => Self::Other(lango_text::sanitize::truncated_line(other, 40)),
        })
    }

    /// Returns the form of 1.0.
    pub(crate) fn to_v1_json(&self) -> Value {
        let mut scheme = self.to_json();
        if let Value::Object(fields) = &mut scheme {
            fields.retain(|name, _| name.ends_with("SecurityScheme"));
        }
        scheme
    }

    /// Returns both forms in one object; their field names do not collide.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::ApiKey { location, name } => json!({
                "type": "apiKey", "in": location.as_str(), "name": name,
                "apiKeySecurityScheme": { "location": location.as_str(), "name": name },
            }),
            Self::Http { scheme } => json!({
                "type": "http", "scheme": scheme, "httpAuthSecurityScheme": { "scheme": scheme },
            }),
            Self::OAuth2 { flows } => json!({
                "type": "oauth2", "flows": flows, "oauth2SecurityScheme": { "flows": flows },
            }),
            Self::OpenIdConnect { url } => json!({
                "type": "openIdConnect", "openIdConnectUrl": url,
                "openIdConnectSecurityScheme": { "openIdConnectUrl": url },
            }),
            Self::MutualTls => json!({ "type": "mutualTLS", "mtlsSecurityScheme": {} }),
            Self::Other(kind) => json!({ "type": kind }),
        }
    }
}

/// Schemes that are required together, with the scopes of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityRequirement(pub BTreeMap<String, Vec<String>>);

impl SecurityRequirement {
    /// Parses both forms: `{"bearer": []}` and `{"schemes": {"bearer": {"list": []}}}`.
    pub(crate) fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let schemes = match fields.get("schemes") {
            Some(Value::Object(schemes)) => schemes.clone(),
            _ => value.as_object().cloned().unwrap_or_default(),
        };
        let scopes = |value: &Value| {
            let list = value
                .get("list")
                .unwrap_or(value)
                .as_array()
                .cloned()
                .unwrap_or_default();
            list.iter()
                .filter_map(|scope| scope.as_str().map(str::to_owned))
                .collect()
        };
        Ok(Self(
            schemes
                .iter()
                .map(|(name, value)| (name.clone(), scopes(value)))
                .collect(),
        ))
    }

    pub(crate) fn to_v1_json(&self) -> Value {
        let schemes = self
            .0
            .iter()
            .map(|(name, scopes)| (name.clone(), json!({ "list": scopes })));
        JsonObjectWriter::default()
            .with("schemes", Value::Object(schemes.collect()))
            .build()
    }

    pub(crate) fn to_v03_json(&self) -> Value {
        json!(self.0)
    }
}
