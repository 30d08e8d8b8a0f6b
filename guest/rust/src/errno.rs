use core::fmt;

/// What a host call gives.
pub type Result<T> = core::result::Result<T, Errno>;

/// A refused or failed host call. Numbers are part of the ABI and never change meaning; one that
/// this crate does not know yet is still an `Errno`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Errno {
            $(#[doc = $meaning] pub const $name: Errno = Errno($number);)*

            /// The name the documentation gives it, such as `ENOENT`.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => stringify!($name),)*
                    _ => "FAILED",
                }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self.0 {
                    $($number => $meaning,)*
                    _ => "a failure this crate does not know",
                }
            }
        }
    };
}

errnos! {
    EINVAL = 1, "an argument is not of the documented form";
    EFAULT = 2, "a pointer and length lie outside the guest's memory";
    EDENIED = 3, "refused by reach, grant, glob, information flow or rule";
    ENOENT = 4, "absent, or above what this invocation may see";
    EEXIST = 5, "the destination is there already";
    EVERSION = 6, "changed since it was read";
    EREAD = 7, "an existing file must be read before it is overwritten";
    ENOTEMPTY = 8, "the directory is not empty";
    ENOTREG = 9, "not a regular file";
    ENOMATCH = 10, "the text to replace does not occur";
    EAMBIGUOUS = 11, "the text to replace occurs more than once";
    EEMPTY = 12, "the text to replace is empty";
    ESAME = 13, "old and new text are the same";
    EDELETED = 14, "deleted since it was read";
    ETOOBIG = 15, "one item is over its limit";
    EQUOTA = 16, "a budget of the invocation or of the store is used up";
    EUNAVAIL = 17, "something needed is not ready";
    ETIMEOUT = 18, "it took too long";
    ECANCELED = 19, "the invocation is cancelled or its authority was withdrawn";
    EIO = 20, "the other side failed";
    ESECRET = 21, "the secret is absent or not for this use";
    ECONFLICT = 22, "the state assumed is not the state there is";
    ECHILD = 23, "the child invocation failed";
    EINTERNAL = 24, "the host failed";
}

impl Errno {
    /// Its number in the ABI.
    pub fn number(self) -> i32 {
        self.0
    }

    /// What a host function returned, as a result.
    pub(crate) fn check(returned: i64) -> Result<u64> {
        if returned < 0 {
            return Err(Errno(returned.unsigned_abs().min(i32::MAX as u64) as i32));
        }
        Ok(returned as u64)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Errno {}
