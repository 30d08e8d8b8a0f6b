//! One function for each host function, over slices and without allocation. A result of variable
//! length waits in the host's result register: the call returns its length, [`result_read`] and
//! [`result_meta`] copy from it.

use crate::errno::{Errno, Result};
use crate::sys;

macro_rules! host {
    // The parameters are byte slices and plain numbers; a slice becomes a pointer and a length.
    ($($(#[$doc:meta])* $name:ident($($bytes:ident),*; $($number:ident: $type:ty),*);)*) => {$(
        $(#[$doc])*
        pub fn $name($($bytes: &[u8],)* $($number: $type),*) -> Result<u64> {
            Errno::check(unsafe { sys::$name($($bytes.as_ptr(), $bytes.len(),)* $($number),*) })
        }
    )*};
}

host! {
    /// Places the invocation's input in the result register; returns its length.
    input(;);
    /// Sets the output, one JSON value. A later call replaces it.
    output(data;);
    /// Marks the invocation as failed, with the capability's own code and a message.
    error(code, message;);
    /// The wall clock in nanoseconds since 1970, coarse.
    time_now(;);
    /// Places the value of a key in the result register; returns its length.
    kv_get(key;);
    /// Stores a value durably.
    kv_put(key, value;);
    /// Removes a key.
    kv_delete(key;);
    /// Places a JSON array of at most limit keys with the prefix, after a key, in the result register.
    kv_list(prefix, after; limit: u32);
    /// Places a JSON document about a file or directory in the result register.
    file_stat(path;);
    /// Places at most len bytes of a file from off in the result register; returns how many.
    file_read(path; off: i64, len: usize);
    /// Places a JSON array of a directory's entries in the result register.
    file_list(path, after; limit: u32);
    /// Creates a file that must not exist.
    file_create(path, data;);
    /// Creates a file, or replaces the version this session read or wrote last.
    file_write(path, data;);
    /// Replaces exactly the named version of a file.
    file_replace(path, version, data;);
    /// Replaces one exact occurrence of old, or every one when all is 1; returns how many.
    file_edit(path, old, new; all: i32);
    /// Copies a file; never overwrites.
    file_copy(from, to;);
    /// Moves a file; never overwrites.
    file_move(from, to;);
    /// Removes a file or an empty directory.
    file_remove(path;);
    /// Makes a directory that must not exist, with the directories above it.
    file_mkdir(path;);
    /// Places a JSON array of matching lines in the result register.
    file_grep(pattern, glob; limit: u32);
    /// Places a JSON array of matching paths in the result register.
    file_glob(glob; limit: u32);
    /// Invokes another capability and places its output in the result register.
    capability_invoke(reference, input;);
    /// Sends one HTTP request and places the response's body in the result register.
    http_fetch(request, body;);
    /// Places the HMAC of a message, keyed with a secret, in the result register.
    secret_hmac(name, message;);
    /// Places audit rows in the result register.
    audit_query(query;);
}

/// Adds one log record; level 0 is debug, 1 info, 2 warn, 3 error.
pub fn log(level: i32, message: &[u8]) -> Result<u64> {
    Errno::check(unsafe { sys::log(level, message.as_ptr(), message.len()) })
}

/// Copies the result register's body from off; returns how many bytes, 0 at the end.
pub fn result_read(to: &mut [u8], off: usize) -> Result<u64> {
    Errno::check(unsafe { sys::result_read(to.as_mut_ptr(), off, to.len()) })
}

/// Copies the JSON document that describes the last result from off; returns how many bytes.
pub fn result_meta(to: &mut [u8], off: usize) -> Result<u64> {
    Errno::check(unsafe { sys::result_meta(to.as_mut_ptr(), off, to.len()) })
}

/// Fills to from the host's cryptographic source.
pub fn random(to: &mut [u8]) -> Result<u64> {
    Errno::check(unsafe { sys::random(to.as_mut_ptr(), to.len()) })
}
