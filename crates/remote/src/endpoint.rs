//! Which of a card's addresses is spoken to.

use url::Url;

use crate::a2a::{AgentCard, AgentInterface, Binding, ProtocolVersion, WireFormat};
use crate::outbound::Outbound;

/// An address, and how it is spoken to.
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

/// The first address of 1.0 that can be used, else the first of 0.3; without one, why each cannot.
pub(crate) fn select_endpoint(card: &AgentCard, outgoing: &Outbound) -> Result<Endpoint, String> {
    let judged: Vec<Result<Endpoint, String>> = card
        .interfaces
        .iter()
        .map(|interface| {
            let endpoint = evaluate(interface, outgoing)?;
            Ok(Endpoint {
                can_stream: card.capabilities.streaming,
                ..endpoint
            })
        })
        .collect();
    let usable = || judged.iter().filter_map(|judged| judged.as_ref().ok());
    let newer = usable().find(|endpoint| endpoint.version == ProtocolVersion::V1_0);
    if let Some(endpoint) = newer.or_else(|| usable().next()) {
        return Ok(endpoint.clone());
    }
    let mut reasons: Vec<String> = judged.into_iter().filter_map(Result::err).take(3).collect();
    reasons.dedup();
    Err(reasons.join("; "))
}

/// How an address would be spoken to, or why it is not.
pub(crate) fn evaluate(
    interface: &AgentInterface,
    outgoing: &Outbound,
) -> Result<Endpoint, String> {
    let binding = match &interface.binding {
        Binding::JsonRpc => SupportedBinding::JsonRpc,
        Binding::HttpJson => SupportedBinding::HttpJson,
        other => return Err(format!("{other} is not spoken here")),
    };
    let version = interface.supported_version().ok_or_else(|| {
        let version = lango_net::sanitize::one_line(&interface.version, 20);
        format!("version {version} is not spoken here")
    })?;
    let url = lango_net::parse_url(&interface.url).map_err(|error| error.to_string())?;
    outgoing
        .check_url(&url)
        .map_err(|error| error.to_string())?;
    if outgoing.has_credentials() && !outgoing.is_configured_origin(&url) {
        let origin = url.origin().ascii_serialization();
        return Err(format!(
            "{origin} is not where the card was configured, so it gets no credentials; allowedOrigins can name it"
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
