//! The envelope of JSON-RPC 2.0.

use serde_json::{Value, json};

use super::error::{ErrorKind, ProtocolError};
use super::request::{A2aCall, A2aMethod};
use super::version::{ProtocolVersion, WireFormat};

/// What an answer must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcId {
    Number(i64),
    Text(String),
    /// Nobody could be told apart.
    Null,
}

impl RpcId {
    fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
            Self::Null => Value::Null,
        }
    }

    fn from_json(value: Option<&Value>) -> Option<Self> {
        match value? {
            Value::String(text) if text.len() <= 512 => Some(Self::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::Null => Some(Self::Null),
            _ => None,
        }
    }
}

/// A request that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRequest {
    pub id: RpcId,
    pub version: ProtocolVersion,
    pub call: A2aCall,
}

/// A request that could not be read; the id where at least that could.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRejection {
    pub id: RpcId,
    pub version: ProtocolVersion,
    pub error: ProtocolError,
}

impl RpcRejection {
    pub fn to_response(&self) -> Value {
        error_response(&self.id, &self.error, self.version)
    }
}

/// Reads the body of a request. The spelling of the method tells the version; `header` is what `A2A-Version` says, which
/// must be a version that is spoken, and which a method of 1.0 must fit.
pub fn parse_request(body: &[u8], header: Option<&str>) -> Result<RpcRequest, Box<RpcRejection>> {
    let refuse = |id: RpcId, version, error| Box::new(RpcRejection { id, version, error });
    let value: Value = serde_json::from_slice(body).map_err(|_| {
        let error = ProtocolError::new(ErrorKind::Parse, "Invalid JSON payload");
        refuse(RpcId::Null, ProtocolVersion::V0_3, error)
    })?;
    let invalid = |why: &str| ProtocolError::new(ErrorKind::InvalidRequest, why);
    let id = RpcId::from_json(value.get("id"));
    let known = id.clone().unwrap_or(RpcId::Null);
    let early = |error| refuse(known.clone(), ProtocolVersion::V0_3, error);
    if !value.is_object() || value.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(early(invalid(
            "Request payload validation error: it is no JSON-RPC 2.0 request",
        )));
    }
    let no_id = || invalid("`id` must be a text or a whole number");
    if id.is_none() && value.get("id").is_some() {
        return Err(early(no_id()));
    }
    let name = value.get("method").and_then(Value::as_str);
    let name = name.ok_or_else(|| early(invalid("`method` must be a text")))?;
    let (method, version) = A2aMethod::from_rpc_name(name).ok_or_else(|| {
        let name = lango_net::sanitize::one_line(name, 60);
        early(ProtocolError::new(
            ErrorKind::MethodNotFound,
            format!("Method not found: {name}"),
        ))
    })?;
    let refused = |error| refuse(known.clone(), version, error);
    let asked = ProtocolVersion::from_header(header).map_err(refused)?;
    if version == ProtocolVersion::V1_0 && asked != version {
        let message = format!(
            "A2A version '{asked}' is not supported for {name}; send {}: 1.0",
            ProtocolVersion::HEADER
        );
        return Err(refused(ProtocolError::new(
            ErrorKind::VersionNotSupported,
            message,
        )));
    }
    let params = value.get("params").unwrap_or(&Value::Null);
    if !(params.is_object() || params.is_null()) {
        let error = ProtocolError::new(ErrorKind::InvalidParams, "`params` must be an object");
        return Err(refused(error));
    }
    let call = A2aCall::from_params(method, params, WireFormat::rpc(version))
        .map_err(|error| refused(error.into()))?;
    // Nobody could tell what the answer is for; said last, because other mistakes tell more.
    let id = id.ok_or_else(|| refused(no_id()))?;
    Ok(RpcRequest { id, version, call })
}

/// A request to a peer; nothing where the version does not know the method.
pub fn encode_request(id: i64, call: &A2aCall, version: ProtocolVersion) -> Option<Value> {
    let method = call.request.method().name(version)?;
    Some(
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": call.params(WireFormat::rpc(version)) }),
    )
}

pub fn success_response(id: &RpcId, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result })
}

pub fn error_response(id: &RpcId, error: &ProtocolError, version: ProtocolVersion) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": error.to_rpc_json(version) })
}

/// The result in a peer's answer, or the error that it answers with.
pub fn parse_response(answer: Value) -> Result<Value, ProtocolError> {
    let odd = |why: &str| ProtocolError::new(ErrorKind::InvalidAgentResponse, why);
    let Value::Object(mut answer) = answer else {
        return Err(odd("the answer is no JSON-RPC answer"));
    };
    match (answer.remove("result"), answer.remove("error")) {
        (_, Some(error)) if !error.is_null() => Err(ProtocolError::from_rpc_json(&error)),
        (Some(result), _) => Ok(result),
        _ => Err(odd("the answer has neither a result nor an error")),
    }
}
