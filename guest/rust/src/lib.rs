//! The Ecotone ABI for biomes in Rust. No other crate is needed.
//!
//! ```ignore
//! ecotone::capability!(greet, |input| {
//!     let name = ecotone::json::parse(input)?.text("name")?.to_string();
//!     Ok(ecotone::json::object([("greeting", format!("hello {name}").into())]))
//! });
//! ```
//!
//! A refusal is a value: what the host denies comes back as an [`Errno`], and the capability may go
//! on without it. Every invocation begins with the memory the module was initialised with, so
//! statics are as they were compiled and nothing has to be freed.
//!
//! The crate is `no_std`. The module [`call`] has one function for each host function and allocates
//! nothing; the rest, with the feature `std` (the default), returns `Vec` and `String`.
#![no_std]
#![deny(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

pub mod call;
mod errno;
mod sys;

#[cfg(feature = "std")]
mod data;
#[cfg(feature = "std")]
pub mod files;
#[cfg(feature = "std")]
mod invocation;
#[cfg(feature = "std")]
pub mod json;
#[cfg(feature = "std")]
pub mod kv;
#[cfg(feature = "std")]
mod outside;

pub use errno::{Errno, Result};
#[cfg(feature = "std")]
pub use invocation::{fail, input, log, now, output, random, run, Failure, Level};
#[cfg(feature = "std")]
pub use outside::{audit_query, fetch, hmac, invoke, InvokeError, Request, Response};

/// Exports a capability under the name the manifest gives it. The function takes the input and
/// returns a [`json::Value`] or a [`Failure`], into which an [`Errno`] and a [`json::Error`] convert.
#[cfg(feature = "std")]
#[macro_export]
macro_rules! capability {
    ($export:ident, $function:expr) => {
        #[no_mangle]
        pub extern "C" fn $export() -> i32 {
            $crate::run($function)
        }
    };
}
