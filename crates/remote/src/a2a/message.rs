//! Messages and their parts.

use serde_json::{Value, json};

use super::ids::{ContextId, MessageId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::version::WireFormat;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
}

impl Role {
    fn parse(text: &str) -> Result<Self, FieldError> {
        match text {
            "ROLE_USER" | "user" => Ok(Self::User),
            "ROLE_AGENT" | "agent" => Ok(Self::Agent),
            _ => Err(FieldError::at("role", "must be user or agent")),
        }
    }

    fn as_str(self, wire: WireFormat) -> &'static str {
        match (self, wire) {
            (Self::User, WireFormat::V03Rpc) => "user",
            (Self::Agent, WireFormat::V03Rpc) => "agent",
            (Self::User, _) => "ROLE_USER",
            (Self::Agent, _) => "ROLE_AGENT",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context: Option<ContextId>,
    pub task: Option<TaskId>,
    pub references: Vec<TaskId>,
    pub extensions: Vec<String>,
    pub metadata: Metadata,
}

impl Message {
    /// Creates a message with one text part.
    pub fn text(id: MessageId, role: Role, text: impl Into<String>) -> Self {
        Self {
            id,
            role,
            parts: vec![Part::text(text)],
            context: None,
            task: None,
            references: Vec::new(),
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let parts = if wire == WireFormat::V03Rest && fields.has("content") {
            "content"
        } else {
            "parts"
        };
        Ok(Self {
            id: MessageId::required(&fields, "messageId")?,
            role: Role::parse(fields.text("role")?.ok_or_else(|| missing("role"))?)?,
            parts: fields.list(parts, Part::from_json)?,
            context: ContextId::optional(&fields, "contextId")?,
            task: TaskId::optional(&fields, "taskId")?,
            references: fields.list("referenceTaskIds", TaskId::from_json)?,
            extensions: fields.texts("extensions")?,
            metadata: fields.metadata("metadata")?,
        })
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        let parts: Vec<Value> = self.parts.iter().map(|part| part.to_json(wire)).collect();
        let writer = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "message"),
            _ => JsonObjectWriter::default(),
        };
        let writer = writer
            .with("messageId", &self.id)
            .with_some("contextId", self.context.as_ref())
            .with_some("taskId", self.task.as_ref())
            .with("role", self.role.as_str(wire))
            .with(
                if wire == WireFormat::V03Rest {
                    "content"
                } else {
                    "parts"
                },
                parts,
            )
            .with_metadata(&self.metadata)
            .with_texts("extensions", &self.extensions);
        match wire {
            // The protocol buffers of 0.3 lack this field, and strict parsers reject unknown
            // fields.
            WireFormat::V03Rest => writer.build(),
            _ => writer
                .with_list(
                    "referenceTaskIds",
                    self.references.iter().map(Value::from).collect(),
                )
                .build(),
        }
    }

    /// Returns the texts of the parts in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(Part::as_text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub content: PartContent,
    pub filename: Option<String>,
    pub media_type: Option<String>,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    Text(String),
    /// Bytes encoded in base64.
    Raw(String),
    /// URL of a file; untrusted.
    Url(String),
    Data(Value),
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    pub fn new(content: PartContent) -> Self {
        Self {
            content,
            filename: None,
            media_type: None,
            metadata: Metadata::new(),
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        match wire {
            WireFormat::V1 => part_from_v1(&fields),
            WireFormat::V03Rpc | WireFormat::V03Rest => part_from_v03(&fields),
        }
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        match wire {
            WireFormat::V1 => self.to_v1_json(),
            WireFormat::V03Rpc => self.to_v03_json("kind", &["bytes", "uri"]),
            WireFormat::V03Rest => self.to_v03_json("", &["fileWithBytes", "fileWithUri"]),
        }
    }

    fn to_v1_json(&self) -> Value {
        let (name, value) = match &self.content {
            PartContent::Text(text) => ("text", json!(text)),
            PartContent::Raw(bytes) => ("raw", json!(bytes)),
            PartContent::Url(url) => ("url", json!(url)),
            PartContent::Data(data) => ("data", data.clone()),
        };
        JsonObjectWriter::default()
            .with(name, value)
            .with_some("filename", self.filename.as_deref())
            .with_some("mediaType", self.media_type.as_deref())
            .with_metadata(&self.metadata)
            .build()
    }

    /// Returns the JSON of 0.3. `kind` is the name of the discriminator, empty if there is none;
    /// `file` contains the field names for the bytes and the URL of a file.
    fn to_v03_json(&self, kind: &str, file: &[&str; 2]) -> Value {
        let is_rest = kind.is_empty();
        let file_json = |name: &str, value: &str| {
            JsonObjectWriter::default()
                .with(name, value)
                .with_some("name", self.filename.as_deref().filter(|_| !is_rest))
                .with_some("mimeType", self.media_type.as_deref())
                .build()
        };
        let (name, value) = match &self.content {
            PartContent::Text(text) => ("text", json!(text)),
            PartContent::Raw(bytes) => ("file", file_json(file[0], bytes)),
            PartContent::Url(url) => ("file", file_json(file[1], url)),
            // Data must be an object in 0.3; other values are wrapped in one.
            PartContent::Data(data @ Value::Object(_)) if is_rest => {
                ("data", json!({ "data": data }))
            }
            PartContent::Data(data) if is_rest => ("data", json!({ "data": { "value": data } })),
            PartContent::Data(data @ Value::Object(_)) => ("data", data.clone()),
            PartContent::Data(data) => ("data", json!({ "value": data })),
        };
        if is_rest {
            return JsonObjectWriter::default().with(name, value).build();
        }
        JsonObjectWriter::default()
            .with(kind, name)
            .with(name, value)
            .with_metadata(&self.metadata)
            .build()
    }
}

fn part_from_v1(fields: &JsonFields<'_>) -> Result<Part, FieldError> {
    const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];
    let given: Vec<&str> = CONTENTS
        .into_iter()
        .filter(|name| fields.has(name))
        .collect();
    let content = match given.as_slice() {
        ["text"] => PartContent::Text(fields.text("text")?.unwrap_or_default().to_owned()),
        ["raw"] => PartContent::Raw(base64_field(fields, "raw")?),
        ["url"] => PartContent::Url(fields.required("url")?),
        ["data"] => PartContent::Data(fields.get("data").cloned().unwrap_or_default()),
        _ => {
            return Err(FieldError::new(
                "must have exactly one of text, raw, url and data",
            ));
        }
    };
    Ok(Part {
        content,
        filename: fields.non_empty("filename")?,
        media_type: fields.non_empty("mediaType")?,
        metadata: fields.metadata("metadata")?,
    })
}

fn part_from_v03(fields: &JsonFields<'_>) -> Result<Part, FieldError> {
    let metadata = fields.metadata("metadata")?;
    // Early versions of 0.2 called it `type`.
    let kind = fields.text("kind")?.or(fields.text("type")?);
    let kind = kind.or_else(|| {
        ["text", "file", "data"]
            .into_iter()
            .find(|name| fields.has(name))
    });
    match kind {
        Some("text") => {
            let text = fields.text("text")?.ok_or_else(|| missing("text"))?;
            Ok(Part {
                metadata,
                ..Part::text(text)
            })
        }
        Some("data") => {
            let data = fields.metadata("data")?;
            let inner = data
                .get("data")
                .filter(|_| fields.wire == WireFormat::V03Rest)
                .cloned();
            let data = inner.unwrap_or_else(|| Value::Object(data));
            Ok(Part {
                metadata,
                ..Part::new(PartContent::Data(data))
            })
        }
        Some("file") => {
            let part = fields
                .nested("file", part_from_v03_file)?
                .ok_or_else(|| missing("file"))?;
            Ok(Part { metadata, ..part })
        }
        _ => Err(FieldError::at("kind", "must be text, file or data")),
    }
}

fn part_from_v03_file(value: &Value, wire: WireFormat) -> Result<Part, FieldError> {
    let fields = JsonFields::from_value(value, wire)?;
    let first = |names: [&'static str; 2]| names.into_iter().find(|name| fields.has(name));
    let content = match (
        first(["bytes", "fileWithBytes"]),
        first(["uri", "fileWithUri"]),
    ) {
        (Some(bytes), None) => PartContent::Raw(base64_field(&fields, bytes)?),
        (None, Some(url)) => PartContent::Url(fields.required(url)?),
        _ => return Err(FieldError::new("must have either bytes or a URI")),
    };
    let (filename, media_type) = (fields.non_empty("name")?, fields.non_empty("mimeType")?);
    Ok(Part {
        filename,
        media_type,
        ..Part::new(content)
    })
}

/// Returns a base64 string; both alphabets are accepted.
fn base64_field(fields: &JsonFields<'_>, name: &str) -> Result<String, FieldError> {
    let text = fields.text(name)?.unwrap_or_default();
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    if text.bytes().all(is_base64) {
        Ok(text.to_owned())
    } else {
        Err(FieldError::at(name, "must be base64"))
    }
}
