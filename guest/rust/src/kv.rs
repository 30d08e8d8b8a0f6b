//! The durable keys of the biome, in the session's space.

use crate::errno::Result;
use crate::{call, data};
use std::string::String;
use std::vec::Vec;

/// A stored value and what the host says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// Opaque; another one after every put.
    pub version: String,
    /// Of the key, fixed when it was made.
    pub classification: String,
}

/// The value of a key. `ENOENT`: there is none, or it is above what this invocation may see.
pub fn get(key: &str) -> Result<Vec<u8>> {
    call::kv_get(key.as_bytes())?;
    data::body()
}

/// [`get`] with what the host says of the value.
pub fn item(key: &str) -> Result<Item> {
    let value = get(key)?;
    let meta = data::meta()?;
    Ok(Item { value, version: data::text(&meta, "version"), classification: data::text(&meta, "classification") })
}

/// Stores a value durably.
pub fn put(key: &str, value: &[u8]) -> Result<()> {
    call::kv_put(key.as_bytes(), value).map(drop)
}

/// Removes a key. `ENOENT`: there is none.
pub fn delete(key: &str) -> Result<()> {
    call::kv_delete(key.as_bytes()).map(drop)
}

/// The keys that begin with prefix and follow the key after ("" for the first), at most limit of them
/// (0 for as many as the host lists at once), and whether there are more.
pub fn list(prefix: &str, after: &str, limit: u32) -> Result<(Vec<String>, bool)> {
    call::kv_list(prefix.as_bytes(), after.as_bytes(), limit)?;
    data::page(|v| v.as_str().unwrap_or("").into())
}
