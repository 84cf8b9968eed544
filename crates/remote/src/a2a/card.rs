//! What an agent says about itself.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata};
use super::security::{SecurityRequirement, SecurityScheme};
use super::version::{ProtocolVersion, WireFormat};

#[derive(Clone, Debug, PartialEq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    pub provider: Option<AgentProvider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    /// In the order that the agent prefers.
    pub interfaces: Vec<AgentInterface>,
    pub capabilities: AgentCapabilities,
    pub skills: Vec<AgentSkill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Any one of these is enough.
    pub security: Vec<SecurityRequirement>,
    /// As they are written; nothing here verifies them.
    pub signatures: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProvider {
    pub organization: String,
    pub url: String,
}

/// An address where the agent can be spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    pub url: String,
    pub binding: Binding,
    /// As it is written, such as `1.0` or `0.3.0`.
    pub version: String,
    pub tenant: Option<String>,
}

impl AgentInterface {
    /// The version, where it is one that is spoken here. 0.2 differs from 0.3 in nothing that we send.
    pub fn supported_version(&self) -> Option<ProtocolVersion> {
        let is_0_2 = self.version == "0.2" || self.version.starts_with("0.2.");
        if is_0_2 {
            Some(ProtocolVersion::V0_3)
        } else {
            ProtocolVersion::parse(&self.version)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
    Other(String),
}

impl Binding {
    pub fn parse(text: &str) -> Self {
        match text.to_ascii_uppercase().as_str() {
            "JSONRPC" => Self::JsonRpc,
            "HTTP+JSON" => Self::HttpJson,
            "GRPC" => Self::Grpc,
            _ => Self::Other(lango_net::sanitize::one_line(text, 60)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCapabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    pub extended_card: bool,
    pub extensions: Vec<AgentExtension>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AgentExtension {
    pub uri: String,
    pub description: String,
    /// Whoever does not know it cannot talk with the agent.
    pub required: bool,
    pub params: Metadata,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
}

/// A card, and what is not as the protocol wants it though it can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCard {
    pub card: AgentCard,
    pub problems: Vec<String>,
}

impl AgentCard {
    /// A card of any version; where it speaks for several, the fields of 1.0 come first.
    pub fn from_json(value: &Value) -> Result<ParsedCard, FieldError> {
        let fields = JsonFields::from_value(value, WireFormat::V1)?;
        let mut problems = Vec::new();
        let interfaces = interfaces(&fields, &mut problems)?;
        let capabilities = fields
            .nested("capabilities", AgentCapabilities::from_json)?
            .unwrap_or_default();
        let extended = fields
            .flag("supportsAuthenticatedExtendedCard")?
            .unwrap_or(false);
        let card = Self {
            name: fields.required("name")?,
            description: text_or_problem(&fields, "description", &mut problems)?,
            version: text_or_problem(&fields, "version", &mut problems)?,
            provider: fields.nested("provider", AgentProvider::from_json)?,
            documentation_url: fields.non_empty("documentationUrl")?,
            icon_url: fields.non_empty("iconUrl")?,
            interfaces,
            capabilities: AgentCapabilities {
                extended_card: capabilities.extended_card || extended,
                ..capabilities
            },
            skills: fields.list("skills", AgentSkill::from_json)?,
            input_modes: fields.texts("defaultInputModes")?,
            output_modes: fields.texts("defaultOutputModes")?,
            security_schemes: schemes(&fields)?,
            security: requirements(&fields)?,
            signatures: fields.list("signatures", |value, _| Ok(value.clone()))?,
        };
        for missing in [
            "capabilities",
            "skills",
            "defaultInputModes",
            "defaultOutputModes",
        ] {
            if !fields.has(missing) {
                problems.push(format!("`{missing}` is missing"));
            }
        }
        card.find_problems(&mut problems);
        Ok(ParsedCard { card, problems })
    }

    fn find_problems(&self, problems: &mut Vec<String>) {
        if self.skills.is_empty() {
            problems.push("it names no skills".to_owned());
        }
        let mut seen = std::collections::BTreeSet::new();
        for again in self.skills.iter().filter(|skill| !seen.insert(&skill.id)) {
            problems.push(format!(
                "two skills have the id `{}`",
                lango_net::sanitize::one_line(&again.id, 60)
            ));
        }
        let wanted = self
            .security
            .iter()
            .flat_map(|requirement| requirement.0.keys());
        for unknown in wanted.filter(|name| !self.security_schemes.contains_key(*name)) {
            let name = lango_net::sanitize::one_line(unknown, 60);
            problems.push(format!(
                "it asks for the security scheme `{name}` that it does not describe"
            ));
        }
    }

    /// One card for all versions that its interfaces speak: their fields do not collide. The address of 0.3 is the first
    /// interface of that version.
    pub fn to_json(&self) -> Value {
        let newer: Vec<Value> = self
            .interfaces
            .iter()
            .map(AgentInterface::to_json)
            .collect();
        let older: Vec<&AgentInterface> = self
            .interfaces
            .iter()
            .filter(|interface| interface.supported_version() == Some(ProtocolVersion::V0_3))
            .collect();
        let skills: Vec<Value> = self.skills.iter().map(AgentSkill::to_json).collect();
        let is_newer = older.is_empty();
        let written = |scheme: &SecurityScheme| {
            if is_newer {
                scheme.write_v1()
            } else {
                scheme.to_json()
            }
        };
        let schemes: Map<String, Value> = self
            .security_schemes
            .iter()
            .map(|(name, scheme)| (name.clone(), written(scheme)))
            .collect();
        let mut writing = JsonObjectWriter::default()
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("version", self.version.as_str())
            .with_some(
                "provider",
                self.provider.as_ref().map(AgentProvider::to_json),
            )
            .with_some("documentationUrl", self.documentation_url.as_deref())
            .with_some("iconUrl", self.icon_url.as_deref())
            .with("supportedInterfaces", newer)
            .with("capabilities", self.capabilities.to_json())
            .with("skills", skills)
            .with("defaultInputModes", self.input_modes.clone())
            .with("defaultOutputModes", self.output_modes.clone());
        if let [first, others @ ..] = older.as_slice() {
            let others = others
                .iter()
                .map(|other| json!({ "url": other.url, "transport": other.binding.as_str() }));
            writing = writing
                .with("protocolVersion", first.version.as_str())
                .with("url", first.url.as_str())
                .with("preferredTransport", first.binding.as_str())
                .with_list("additionalInterfaces", others.collect())
                .with(
                    "supportsAuthenticatedExtendedCard",
                    self.capabilities.extended_card,
                );
        }
        if !schemes.is_empty() {
            let newer: Vec<Value> = self
                .security
                .iter()
                .map(SecurityRequirement::write_v1)
                .collect();
            let older = self
                .security
                .iter()
                .filter(|_| !is_newer)
                .map(SecurityRequirement::write_v03)
                .collect();
            writing = writing
                .with("securitySchemes", schemes)
                .with_list("securityRequirements", newer)
                .with_list("security", older);
        }
        writing
            .with_list("signatures", self.signatures.clone())
            .build()
    }
}

/// Those of 1.0 in their order, then those that only the older fields name.
fn interfaces(
    fields: &JsonFields<'_>,
    problems: &mut Vec<String>,
) -> Result<Vec<AgentInterface>, FieldError> {
    let mut found = fields.list("supportedInterfaces", AgentInterface::from_json)?;
    let version = fields.non_empty("protocolVersion")?;
    let mut older = Vec::new();
    if let Some(url) = fields.non_empty("url")? {
        if version.is_none() && found.is_empty() {
            problems.push("`protocolVersion` is missing; 0.3 is assumed".to_owned());
        }
        let binding = Binding::parse(fields.text("preferredTransport")?.unwrap_or("JSONRPC"));
        older.push((url, binding));
    }
    older.extend(fields.list("additionalInterfaces", |value, wire| {
        let fields = JsonFields::from_value(value, wire)?;
        Ok((
            fields.required("url")?,
            Binding::parse(fields.text("transport")?.unwrap_or("JSONRPC")),
        ))
    })?);
    let version = version.unwrap_or_else(|| ProtocolVersion::V0_3.to_string());
    for (url, binding) in older {
        let is_known = found.iter().any(|known| {
            known.url == url
                && known.binding == binding
                && known.supported_version() == Some(ProtocolVersion::V0_3)
        });
        if !is_known {
            found.push(AgentInterface {
                url,
                binding,
                version: version.clone(),
                tenant: None,
            });
        }
    }
    if found.is_empty() {
        return Err(FieldError::at(
            "supportedInterfaces",
            "is missing, and so is `url`: it has no address",
        ));
    }
    Ok(found)
}

fn text_or_problem(
    fields: &JsonFields<'_>,
    name: &str,
    problems: &mut Vec<String>,
) -> Result<String, FieldError> {
    let found = fields.non_empty(name)?;
    if found.is_none() {
        problems.push(format!("`{name}` is missing"));
    }
    Ok(found.unwrap_or_default())
}

fn schemes(fields: &JsonFields<'_>) -> Result<BTreeMap<String, SecurityScheme>, FieldError> {
    let read = |(name, value): (&String, &Value)| {
        let scheme = SecurityScheme::from_json(value, fields.wire);
        let scheme = scheme.map_err(|error| error.within(name).within("securitySchemes"))?;
        Ok((name.clone(), scheme))
    };
    fields
        .metadata("securitySchemes")?
        .iter()
        .map(read)
        .collect()
}

fn requirements(fields: &JsonFields<'_>) -> Result<Vec<SecurityRequirement>, FieldError> {
    let newer = fields.list("securityRequirements", SecurityRequirement::from_json)?;
    if newer.is_empty() {
        fields.list("security", SecurityRequirement::from_json)
    } else {
        Ok(newer)
    }
}

impl AgentProvider {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let text = |name| Ok(fields.non_empty(name)?.unwrap_or_default());
        Ok(Self {
            organization: text("organization")?,
            url: text("url")?,
        })
    }

    fn to_json(&self) -> Value {
        json!({ "organization": self.organization, "url": self.url })
    }
}

impl AgentInterface {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            url: fields.required("url")?,
            binding: Binding::parse(fields.text("protocolBinding")?.unwrap_or("JSONRPC")),
            version: fields
                .non_empty("protocolVersion")?
                .unwrap_or_else(|| ProtocolVersion::V1_0.to_string()),
            tenant: fields.non_empty("tenant")?,
        })
    }

    fn to_json(&self) -> Value {
        JsonObjectWriter::default()
            .with("url", self.url.as_str())
            .with("protocolBinding", self.binding.as_str())
            .with("protocolVersion", self.version.as_str())
            .with_some("tenant", self.tenant.as_deref())
            .build()
    }
}

impl AgentCapabilities {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let flag = |name| Ok(fields.flag(name)?.unwrap_or(false));
        Ok(Self {
            streaming: flag("streaming")?,
            push_notifications: flag("pushNotifications")?,
            extended_card: flag("extendedAgentCard")?,
            extensions: fields.list("extensions", AgentExtension::from_json)?,
        })
    }

    fn to_json(&self) -> Value {
        let extensions = self
            .extensions
            .iter()
            .map(AgentExtension::to_json)
            .collect();
        JsonObjectWriter::default()
            .with("streaming", self.streaming)
            .with("pushNotifications", self.push_notifications)
            .with("extendedAgentCard", self.extended_card)
            .with_list("extensions", extensions)
            .build()
    }
}

impl AgentExtension {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            uri: fields.required("uri")?,
            description: fields.non_empty("description")?.unwrap_or_default(),
            required: fields.flag("required")?.unwrap_or(false),
            params: fields.metadata("params")?,
        })
    }

    fn to_json(&self) -> Value {
        let params = (!self.params.is_empty()).then(|| Value::Object(self.params.clone()));
        JsonObjectWriter::default()
            .with("uri", self.uri.as_str())
            .with("description", self.description.as_str())
            .with("required", self.required)
            .with_some("params", params)
            .build()
    }
}

impl AgentSkill {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let name = fields.non_empty("name")?.unwrap_or_default();
        Ok(Self {
            id: fields.non_empty("id")?.unwrap_or_else(|| name.clone()),
            name,
            description: fields.non_empty("description")?.unwrap_or_default(),
            tags: fields.texts("tags")?,
            examples: fields.texts("examples")?,
            input_modes: fields.texts("inputModes")?,
            output_modes: fields.texts("outputModes")?,
        })
    }

    fn to_json(&self) -> Value {
        JsonObjectWriter::default()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("tags", self.tags.clone())
            .with_texts("examples", &self.examples)
            .with_texts("inputModes", &self.input_modes)
            .with_texts("outputModes", &self.output_modes)
            .build()
    }
}
