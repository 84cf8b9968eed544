//! Selects the interface of an agent card that is used.

use url::Url;

use crate::a2a::{AgentCard, AgentInterface, Binding, ProtocolVersion, WireFormat};
use crate::outbound::Outbound;

/// A usable interface of a remote agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub url: Url,
    pub binding: SupportedBinding,
    pub version: ProtocolVersion,
    pub tenant: Option<String>,
    pub can_stream: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SupportedBinding {
    JsonRpc,
    HttpJson,
}

impl Endpoint {
    pub fn wire(&self) -> WireFormat {
        match self.binding {
            SupportedBinding::JsonRpc => WireFormat::rpc(self.version),
            SupportedBinding::HttpJson => WireFormat::rest(self.version),
        }
    }
}

/// Returns the first usable interface of version 1.0, else the first of 0.3. If none is usable,
/// returns the reasons.
pub(crate) fn select_endpoint(card: &AgentCard, outbound: &Outbound) -> Result<Endpoint, String> {
    let candidates: Vec<Result<Endpoint, String>> = card
        .interfaces
        .iter()
        .map(|interface| {
            let endpoint = evaluate(interface, outbound)?;
            Ok(Endpoint {
                can_stream: card.capabilities.streaming,
                ..endpoint
            })
        })
        .collect();
    let usable = || {
        candidates
            .iter()
            .filter_map(|candidate| candidate.as_ref().ok())
    };
    let v1 = usable().find(|endpoint| endpoint.version == ProtocolVersion::V1_0);
    if let Some(endpoint) = v1.or_else(|| usable().next()) {
        return Ok(endpoint.clone());
    }
    let mut reasons: Vec<String> = candidates
        .into_iter()
        .filter_map(Result::err)
        .take(3)
        .collect();
    reasons.dedup();
    Err(reasons.join("; "))
}

/// Returns the endpoint of an interface, or the reason why it cannot be used.
pub(crate) fn evaluate(
    interface: &AgentInterface,
    outbound: &Outbound,
) -> Result<Endpoint, String> {
    let binding = match &interface.binding {
        Binding::JsonRpc => SupportedBinding::JsonRpc,
        Binding::HttpJson => SupportedBinding::HttpJson,
        other => return Err(format!("the binding {other} is not supported")),
    };
    let version = interface.supported_version().ok_or_else(|| {
        let version = lango_text::sanitize::truncated_line(&interface.version, 20);
        format!("protocol version {version} is not supported")
    })?;
    let url = lango_net::parse_url(&interface.url).map_err(|error| error.to_string())?;
    outbound
        .check_url(&url)
        .map_err(|error| error.to_string())?;
    if outbound.has_credentials() && !outbound.is_configured_origin(&url) {
        let origin = url.origin().ascii_serialization();
        return Err(format!(
            "{origin} is not the origin of agentCardUrl, so it gets no credentials; add it to allowedOrigins to use it"
        ));
    }
    Ok(Endpoint {
        url,
        binding,
        version,
        tenant: interface.tenant.clone(),
        can_stream: false,
    })
}
