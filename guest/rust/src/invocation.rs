use crate::errno::{Errno, Result};
use crate::{call, data, json};
use std::fmt;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// How much a log record matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the author.
    Debug = 0,
    /// Worth a record.
    Info = 1,
    /// Somebody should look.
    Warn = 2,
    /// Something failed.
    Error = 3,
}

/// A failure of the capability itself, as its caller will see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 1 to 64 bytes of A-Z, 0-9 and _.
    pub code: String,
    /// Says more.
    pub message: String,
}

impl Failure {
    /// Makes one.
    pub fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure { code: code.to_string(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

/// A refusal of the host fails the capability under its own name.
impl From<Errno> for Failure {
    fn from(e: Errno) -> Failure {
        Failure::new(e.name(), e.to_string())
    }
}

impl From<json::Error> for Failure {
    fn from(e: json::Error) -> Failure {
        Failure::new("INPUT_INVALID", e.to_string())
    }
}

/// Runs a capability: [`crate::capability!`] exports a call of it. A panic is reported as PANIC
/// before it ends the module.
pub fn run<F>(function: F) -> i32
where
    F: FnOnce(&[u8]) -> core::result::Result<json::Value, Failure>,
{
    std::panic::set_hook(std::boxed::Box::new(|what| {
        let _ = fail("PANIC", &what.to_string());
    }));
    let done = input().map_err(Failure::from).and_then(|input| function(&input)).and_then(|value| Ok(output(value.to_string().as_bytes())?));
    match done {
        Ok(()) => 0,
        Err(failure) => {
            // When even this is refused the invocation is over, and the host says why.
            let _ = fail(&failure.code, &failure.message);
            1
        }
    }
}

/// The invocation's input, one JSON value.
pub fn input() -> Result<Vec<u8>> {
    call::input()?;
    data::body()
}

/// Sets the output, one JSON value; a later call replaces it.
pub fn output(data: &[u8]) -> Result<()> {
    call::output(data).map(drop)
}

/// Marks the invocation as failed. The output is dropped; the export returns afterwards as usual.
pub fn fail(code: &str, message: &str) -> Result<()> {
    let mut end = message.len().min(4096);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    call::error(code.as_bytes(), message[..end].as_bytes()).map(drop)
}

/// Adds one record to the log. Logging never fails a capability.
pub fn log(level: Level, message: impl fmt::Display) {
    let _ = call::log(level as i32, format!("{}", message).as_bytes());
}

/// The host's clock, coarse: nanoseconds since 1970-01-01T00:00:00Z.
pub fn now() -> Result<u64> {
    call::time_now()
}

/// Fills to from the host's cryptographic source; on an error it is not filled.
pub fn random(to: &mut [u8]) -> Result<()> {
    call::random(to).map(drop)
}
