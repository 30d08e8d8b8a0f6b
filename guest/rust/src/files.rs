//! The workspace of the session. Paths are relative, with forward slashes.

use crate::errno::{Errno, Result};
use crate::{call, data, json};
use std::string::String;
use std::vec::Vec;

/// Describes a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// `file` or `directory`.
    pub kind: String,
    /// In bytes.
    pub size: u64,
    /// Opaque and random.
    pub version: String,
    /// Of the file, fixed when it was made.
    pub classification: String,
}

/// One name of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without the directory.
    pub name: String,
    /// `file` or `directory`.
    pub kind: String,
    /// In bytes.
    pub size: u64,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What was read.
    pub data: Vec<u8>,
    /// Of the whole file.
    pub size: u64,
    /// What a later write is compared with.
    pub version: String,
    /// Whether data reaches the file's end.
    pub eof: bool,
}

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The file's.
    pub path: String,
    /// From 1.
    pub line: u64,
    /// The line.
    pub text: String,
}

/// Describes a file or directory; "." is the workspace.
pub fn stat(path: &str) -> Result<Info> {
    call::file_stat(path.as_bytes())?;
    let v = data::document(&data::body()?)?;
    Ok(Info {
        kind: data::text(&v, "kind"),
        size: data::whole_number(&v, "size"),
        version: data::text(&v, "version"),
        classification: data::text(&v, "classification"),
    })
}

/// Reads at most len bytes from off.
pub fn read(path: &str, off: u64, len: usize) -> Result<Chunk> {
    call::file_read(path.as_bytes(), off as i64, len)?;
    let (data, meta) = (data::body()?, data::meta()?);
    Ok(Chunk {
        data,
        size: data::whole_number(&meta, "size"),
        version: data::text(&meta, "version"),
        eof: meta.get("eof").and_then(json::Value::as_bool).unwrap_or(false),
    })
}

/// Reads a whole file. `EVERSION`: it changed while it was being read.
pub fn read_all(path: &str) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut version = String::new();
    loop {
        let chunk = read(path, all.len() as u64, 256 << 10)?;
        if !version.is_empty() && version != chunk.version {
            return Err(Errno::EVERSION);
        }
        version = chunk.version;
        all.extend_from_slice(&chunk.data);
        if chunk.eof || chunk.data.is_empty() {
            return Ok(all);
        }
    }
}

/// The entries of a directory in name order, after the name after ("" for the first), at most limit
/// of them (0 for as many as the host lists at once), and whether there are more.
pub fn list(path: &str, after: &str, limit: u32) -> Result<(Vec<Entry>, bool)> {
    call::file_list(path.as_bytes(), after.as_bytes(), limit)?;
    data::page(|v| Entry { name: data::text(v, "name"), kind: data::text(v, "kind"), size: data::whole_number(v, "size") })
}

fn version() -> Result<String> {
    Ok(data::text(&data::meta()?, "version"))
}

/// Makes a file that must not exist, with the directories above it, and returns its version.
pub fn create(path: &str, data: &[u8]) -> Result<String> {
    call::file_create(path.as_bytes(), data)?;
    version()
}

/// Makes the file, or replaces the version this session read or wrote last, and returns the new
/// version. `EREAD`: it exists and was not read; `EVERSION`: it changed since; `EDELETED`: it is gone.
pub fn write(path: &str, data: &[u8]) -> Result<String> {
    call::file_write(path.as_bytes(), data)?;
    version()
}

/// Replaces exactly the named version and returns the new one.
pub fn replace(path: &str, old: &str, data: &[u8]) -> Result<String> {
    call::file_replace(path.as_bytes(), old.as_bytes(), data)?;
    version()
}

/// Replaces one exact occurrence of old, or with all every one, and returns how many.
/// `EAMBIGUOUS`: it occurs more than once.
pub fn edit(path: &str, old: &str, new: &str, all: bool) -> Result<u64> {
    call::file_edit(path.as_bytes(), old.as_bytes(), new.as_bytes(), all as i32)
}

/// Copies a regular file. It never overwrites.
pub fn copy(from: &str, to: &str) -> Result<()> {
    call::file_copy(from.as_bytes(), to.as_bytes()).map(drop)
}

/// Moves a regular file. It never overwrites.
pub fn rename(from: &str, to: &str) -> Result<()> {
    call::file_move(from.as_bytes(), to.as_bytes()).map(drop)
}

/// Removes a file or an empty directory.
pub fn remove(path: &str) -> Result<()> {
    call::file_remove(path.as_bytes()).map(drop)
}

/// Makes a directory that must not exist, with the directories above it.
pub fn mkdir(path: &str) -> Result<()> {
    call::file_mkdir(path.as_bytes()).map(drop)
}

/// The lines that match pattern (RE2) in the files that glob names, at most limit of them, and whether
/// there are more.
pub fn grep(pattern: &str, glob: &str, limit: u32) -> Result<(Vec<Match>, bool)> {
    call::file_grep(pattern.as_bytes(), glob.as_bytes(), limit)?;
    data::page(|v| Match { path: data::text(v, "path"), line: data::whole_number(v, "line"), text: data::text(v, "text") })
}

/// The paths that match glob, at most limit of them, and whether there are more.
pub fn glob(glob: &str, limit: u32) -> Result<(Vec<String>, bool)> {
    call::file_glob(glob.as_bytes(), limit)?;
    data::page(|v| v.as_str().unwrap_or("").into())
}
