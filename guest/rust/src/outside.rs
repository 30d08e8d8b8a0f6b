use crate::errno::{Errno, Result};
use crate::{call, data, json, Failure};
use std::string::{String, ToString};
use std::vec::Vec;

/// Why a child invocation gave no output.
#[derive(Clone, Debug, PartialEq)]
pub enum InvokeError {
    /// The host refused the call.
    Refused(Errno),
    /// The child ran and failed; its problem document (RFC 9457), with `code` and `detail`.
    Failed(json::Value),
}

impl From<InvokeError> for Failure {
    fn from(e: InvokeError) -> Failure {
        match e {
            InvokeError::Refused(errno) => errno.into(),
            InvokeError::Failed(problem) => Failure::new(Errno::ECHILD.name(), data::text(&problem, "detail")),
        }
    }
}

/// Invokes another capability with input, one JSON value, and returns its output.
pub fn invoke(reference: &str, input: &[u8]) -> core::result::Result<Vec<u8>, InvokeError> {
    match call::capability_invoke(reference.as_bytes(), input) {
        Ok(_) => data::body().map_err(InvokeError::Refused),
        Err(Errno::ECHILD) => {
            let problem = data::body().and_then(|body| data::document(&body));
            Err(problem.map_or_else(InvokeError::Refused, InvokeError::Failed))
        }
        Err(e) => Err(InvokeError::Refused(e)),
    }
}

/// One HTTP request.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// `GET`, say.
    pub method: &'a str,
    /// Absolute.
    pub url: &'a str,
    /// Names and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// The name of a secret that the host puts in; "" for none.
    pub secret: &'a str,
    /// Sent as it is.
    pub body: &'a [u8],
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Response {
    /// Of HTTP.
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// At most the environment's limit.
    pub body: Vec<u8>,
}

/// Sends one HTTP request and returns the response, whatever its status. `EDENIED`: no endpoint rule
/// allows it.
pub fn fetch(request: &Request) -> Result<Response> {
    let mut document = std::vec![("method".to_string(), request.method.into()), ("url".to_string(), request.url.into())];
    if !request.headers.is_empty() {
        let headers = request.headers.iter().map(|(k, v)| (k.to_string(), (*v).into())).collect();
        document.push(("headers".to_string(), json::Value::Object(headers)));
    }
    if !request.secret.is_empty() {
        document.push(("secret".to_string(), request.secret.into()));
    }
    call::http_fetch(json::Value::Object(document).to_string().as_bytes(), request.body)?;
    let (body, meta) = (data::body()?, data::meta()?);
    let headers = match meta.get("headers") {
        Some(json::Value::Object(all)) => all.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap_or("").to_string())).collect(),
        _ => Vec::new(),
    };
    Ok(Response { status: data::whole_number(&meta, "status") as u16, headers, body })
}

/// HMAC-SHA-256, keyed with the named secret, of the secret's fixed prefix and message.
pub fn hmac(name: &str, message: &[u8]) -> Result<Vec<u8>> {
    call::secret_hmac(name.as_bytes(), message)?;
    data::body()
}

/// Audit rows of the caller's own organisation; the query is {invocation, capability, after, limit}.
pub fn audit_query(query: &json::Value) -> Result<json::Value> {
    call::audit_query(query.to_string().as_bytes())?;
    data::document(&data::body()?)
}
