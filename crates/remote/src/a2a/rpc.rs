//! The JSON-RPC 2.0 binding.

use serde_json::{Value, json};

use super::error::{ErrorKind, ProtocolError};
use super::method::A2aMethod;
use super::request::A2aCall;
use super::version::{ProtocolVersion, WireFormat};

/// The id of a request, which the response repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcId {
    Number(i64),
    Text(String),
    /// The id could not be read.
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

/// A valid request.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRequest {
    pub id: RpcId,
    pub version: ProtocolVersion,
    pub call: A2aCall,
}

/// An invalid request, with its id if that could be read.
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

/// Parses the body of a request. The spelling of the method determines the version. `header` is the
/// `A2A-Version` header: it must name a supported version, and 1.0 for a method of 1.0.
pub fn parse_request(body: &[u8], header: Option<&str>) -> Result<RpcRequest, Box<RpcRejection>> {
    let reject_as = |id: RpcId, version, error| Box::new(RpcRejection { id, version, error });
    let value: Value = serde_json::from_slice(body).map_err(|_| {
        let error = ProtocolError::new(ErrorKind::Parse, "Invalid JSON payload");
        reject_as(RpcId::Null, ProtocolVersion::V0_3, error)
    })?;
    let invalid = |message: &str| ProtocolError::new(ErrorKind::InvalidRequest, message);
    let id = RpcId::from_json(value.get("id"));
    let response_id = id.clone().unwrap_or(RpcId::Null);
    let reject_early = |error| reject_as(response_id.clone(), ProtocolVersion::V0_3, error);
    if !value.is_object() || value.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(reject_early(invalid(
            "Request payload validation error: not a JSON-RPC 2.0 request",
        )));
    }
    let invalid_id = || invalid("`id` must be a string or a whole number");
    if id.is_none() && value.get("id").is_some() {
        return Err(reject_early(invalid_id()));
    }
    let name = value.get("method").and_then(Value::as_str);
    let name = name.ok_or_else(|| reject_early(invalid("`method` must be a string")))?;
    let (method, version) = A2aMethod::from_rpc_name(name).ok_or_else(|| {
        let name = lango_text::sanitize::truncated_line(name, 60);
        reject_early(ProtocolError::new(
            ErrorKind::MethodNotFound,
            format!("Method not found: {name}"),
        ))
    })?;
    let reject = |error| reject_as(response_id.clone(), version, error);
    let requested = ProtocolVersion::from_header(header).map_err(reject)?;
    if version == ProtocolVersion::V1_0 && requested != version {
        let message = format!(
            "A2A version '{requested}' is not supported for {name}; send {}: 1.0",
            ProtocolVersion::HEADER
        );
        return Err(reject(ProtocolError::new(
            ErrorKind::VersionNotSupported,
            message,
        )));
    }
    let params = value.get("params").unwrap_or(&Value::Null);
    if !(params.is_object() || params.is_null()) {
        let error = ProtocolError::new(ErrorKind::InvalidParams, "`params` must be an object");
        return Err(reject(error));
    }
    let call = A2aCall::from_params(method, params, WireFormat::rpc(version))
        .map_err(|error| reject(error.into()))?;
    // A response without an id is of no use. Checked last, because other errors are more helpful.
    let id = id.ok_or_else(|| reject(invalid_id()))?;
    Ok(RpcRequest { id, version, call })
}

/// Encodes a request; none if the version does not have the method.
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

/// Returns the result of a response, or its error.
pub fn parse_response(response: Value) -> Result<Value, ProtocolError> {
    let invalid = |message: &str| ProtocolError::new(ErrorKind::InvalidAgentResponse, message);
    let Value::Object(mut response) = response else {
        return Err(invalid("the response is not a JSON-RPC response"));
    };
    match (response.remove("result"), response.remove("error")) {
        (_, Some(error)) if !error.is_null() => Err(ProtocolError::from_rpc_json(&error)),
        (Some(result), _) => Ok(result),
        _ => Err(invalid("the response has neither a result nor an error")),
    }
}
