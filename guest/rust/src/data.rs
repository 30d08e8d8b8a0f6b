//! What the other modules have in common: reading the result register whole.

use crate::errno::{Errno, Result};
use crate::{call, json};
use std::string::String;
use std::vec::Vec;

const STEP: usize = 4096;

fn whole(copy: fn(&mut [u8], usize) -> Result<u64>) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let have = all.len();
        all.resize(have + STEP.max(have), 0);
        let n = copy(&mut all[have..], have)? as usize;
        all.truncate(have + n);
        if all.len() < have + STEP.max(have) {
            return Ok(all);
        }
    }
}

/// The result register's body.
pub(crate) fn body() -> Result<Vec<u8>> {
    whole(call::result_read)
}

/// The document that describes the last result.
pub(crate) fn meta() -> Result<json::Value> {
    document(&whole(call::result_meta)?)
}

/// A document of the host's. One that is no JSON is the host's fault.
pub(crate) fn document(data: &[u8]) -> Result<json::Value> {
    json::parse(data).map_err(|_| Errno::EINTERNAL)
}

pub(crate) fn text(of: &json::Value, member: &str) -> String {
    of.text(member).unwrap_or("").into()
}

pub(crate) fn whole_number(of: &json::Value, member: &str) -> u64 {
    of.get(member).and_then(json::Value::as_f64).unwrap_or(0.0) as u64
}

/// A page of a listing.
pub(crate) fn page<T>(make: impl Fn(&json::Value) -> T) -> Result<(Vec<T>, bool)> {
    let list = document(&body()?)?;
    let more = meta()?.get("more").and_then(json::Value::as_bool).unwrap_or(false);
    Ok((list.items().iter().map(make).collect(), more))
}
