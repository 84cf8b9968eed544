//! JSON of agent cards, for all protocol versions.

use std::collections::{BTreeMap, BTreeSet};

use lango_text::sanitize::truncated_line;
use serde_json::{Map, Value, json};

use super::card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Binding, ParsedCard,
};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter};
use super::security::{SecurityRequirement, SecurityScheme};
use super::version::{ProtocolVersion, WireFormat};

impl AgentCard {
    /// Parses a card of any version. The fields of 1.0 take precedence.
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
            problems.push("it has no skills".to_owned());
        }
        let mut seen = BTreeSet::new();
        for duplicate in self.skills.iter().filter(|skill| !seen.insert(&skill.id)) {
            problems.push(format!(
                "two skills have the id `{}`",
                truncated_line(&duplicate.id, 60)
            ));
        }
        let required = self
            .security
            .iter()
            .flat_map(|requirement| requirement.0.keys());
        for undescribed in required.filter(|name| !self.security_schemes.contains_key(*name)) {
            let name = truncated_line(undescribed, 60);
            problems.push(format!(
                "it requires the security scheme `{name}` but does not describe it"
            ));
        }
    }

    /// Returns one card for all versions of its interfaces: their fields do not collide. The URL of
    /// 0.3 is the first interface of that version.
    pub fn to_json(&self) -> Value {
        let interfaces: Vec<Value> = self
            .interfaces
            .iter()
            .map(AgentInterface::to_json)
            .collect();
        let skills: Vec<Value> = self.skills.iter().map(AgentSkill::to_json).collect();
        let provider = self.provider.as_ref().map(AgentProvider::to_json);
        let writer = JsonObjectWriter::default()
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("version", self.version.as_str())
            .with_some("provider", provider)
            .with_some("documentationUrl", self.documentation_url.as_deref())
            .with_some("iconUrl", self.icon_url.as_deref())
            .with("supportedInterfaces", interfaces)
            .with("capabilities", self.capabilities.to_json())
            .with("skills", skills)
            .with("defaultInputModes", self.input_modes.clone())
            .with("defaultOutputModes", self.output_modes.clone());
        let v03: Vec<&AgentInterface> = self
            .interfaces
            .iter()
            .filter(|interface| interface.supported_version() == Some(ProtocolVersion::V0_3))
            .collect();
        let writer = self.write_v03_interfaces(writer, &v03);
        self.write_security(writer, !v03.is_empty())
            .with_list("signatures", self.signatures.clone())
            .build()
    }

    fn write_v03_interfaces(
        &self,
        writer: JsonObjectWriter,
        interfaces: &[&AgentInterface],
    ) -> JsonObjectWriter {
        let [first, others @ ..] = interfaces else {
            return writer;
        };
        let others = others
            .iter()
            .map(|other| json!({ "url": other.url, "transport": other.binding.as_str() }));
        let extended_card = self.capabilities.extended_card;
        writer
            .with("protocolVersion", first.version.as_str())
            .with("url", first.url.as_str())
            .with("preferredTransport", first.binding.as_str())
            .with_list("additionalInterfaces", others.collect())
            .with("supportsAuthenticatedExtendedCard", extended_card)
    }

    fn write_security(&self, writer: JsonObjectWriter, has_v03: bool) -> JsonObjectWriter {
        if self.security_schemes.is_empty() {
            return writer;
        }
        let scheme_json = |scheme: &SecurityScheme| {
            if has_v03 {
                scheme.to_json()
            } else {
                scheme.to_v1_json()
            }
        };
        let schemes: Map<String, Value> = self
            .security_schemes
            .iter()
            .map(|(name, scheme)| (name.clone(), scheme_json(scheme)))
            .collect();
        let requirements = || self.security.iter();
        let v1 = requirements().map(SecurityRequirement::to_v1_json);
        let v03 = requirements()
            .filter(|_| has_v03)
            .map(SecurityRequirement::to_v03_json);
        writer
            .with("securitySchemes", schemes)
            .with_list("securityRequirements", v1.collect())
            .with_list("security", v03.collect())
    }
}

/// Returns the interfaces of 1.0 in their order, then those that only the 0.3 fields name.
fn interfaces(
    fields: &JsonFields<'_>,
    problems: &mut Vec<String>,
) -> Result<Vec<AgentInterface>, FieldError> {
    let mut found = fields.list("supportedInterfaces", AgentInterface::from_json)?;
    let version = fields.non_empty("protocolVersion")?;
    let mut v03 = Vec::new();
    if let Some(url) = fields.non_empty("url")? {
        if version.is_none() && found.is_empty() {
            problems.push("`protocolVersion` is missing; 0.3 is assumed".to_owned());
        }
        let binding = Binding::parse(fields.text("preferredTransport")?.unwrap_or("JSONRPC"));
        v03.push((url, binding));
    }
    v03.extend(fields.list("additionalInterfaces", |value, wire| {
        let fields = JsonFields::from_value(value, wire)?;
        Ok((
            fields.required("url")?,
            Binding::parse(fields.text("transport")?.unwrap_or("JSONRPC")),
        ))
    })?);
    let version = version.unwrap_or_else(|| ProtocolVersion::V0_3.to_string());
    for (url, binding) in v03 {
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
            "is missing, and so is `url`: the agent has no URL",
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
    let parse_scheme = |(name, value): (&String, &Value)| {
        let scheme = SecurityScheme::from_json(value, fields.wire);
        let scheme = scheme.map_err(|error| error.within(name).within("securitySchemes"))?;
        Ok((name.clone(), scheme))
    };
    fields
        .metadata("securitySchemes")?
        .iter()
        .map(parse_scheme)
        .collect()
}

fn requirements(fields: &JsonFields<'_>) -> Result<Vec<SecurityRequirement>, FieldError> {
    let v1 = fields.list("securityRequirements", SecurityRequirement::from_json)?;
    if v1.is_empty() {
        fields.list("security", SecurityRequirement::from_json)
    } else {
        Ok(v1)
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
