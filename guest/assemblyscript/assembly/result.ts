// What a host call is refused with. Numbers are part of the ABI and never change meaning.
export enum Errno {
  OK = 0,
  EINVAL = 1, // an argument is not of the documented form
  EFAULT = 2, // a pointer lies outside memory
  EDENIED = 3, // refused by reach, grant, glob, flow or rule
  ENOENT = 4, // absent, or above what this invocation may see
  EEXIST = 5, // the destination is there already
  EVERSION = 6, // changed since it was read
  EREAD = 7, // read it first
  ENOTEMPTY = 8, // the directory is not empty
  ENOTREG = 9, // not a regular file
  ENOMATCH = 10, // the text to replace does not occur
  EAMBIGUOUS = 11, // the text to replace occurs more than once
  EEMPTY = 12, // the text to replace is empty
  ESAME = 13, // old and new text are the same
  EDELETED = 14, // deleted since it was read
  ETOOBIG = 15, // one item is over its limit
  EQUOTA = 16, // a budget is used up
  EUNAVAIL = 17, // something needed is not ready
  ETIMEOUT = 18, // took too long
  ECANCELED = 19, // the invocation is cancelled or its authority withdrawn
  EIO = 20, // the other side failed
  ESECRET = 21, // the secret is absent or not for this use
  ECONFLICT = 22, // the state assumed is not the state there is
  ECHILD = 23, // the child invocation failed
  EINTERNAL = 24, // the host failed
}

const names: StaticArray<string> = [
  "OK", "EINVAL", "EFAULT", "EDENIED", "ENOENT", "EEXIST", "EVERSION", "EREAD", "ENOTEMPTY", "ENOTREG", "ENOMATCH", "EAMBIGUOUS", "EEMPTY",
  "ESAME", "EDELETED", "ETOOBIG", "EQUOTA", "EUNAVAIL", "ETIMEOUT", "ECANCELED", "EIO", "ESECRET", "ECONFLICT", "ECHILD", "EINTERNAL",
];

// The name the documentation gives an error number, such as "ENOENT".
export function errnoName(errno: i32): string {
  return errno >= 0 && errno < names.length ? names[errno] : "FAILED";
}

// What a host call gave: a value, or the error number it was refused with. AssemblyScript cannot
// catch exceptions, so a refusal is a value here; asking a refused result for its value ends the
// capability with the error's name.
export class Result<T> {
  constructor(
    readonly errno: i32,
    private readonly given: T,
  ) {}

  get ok(): bool {
    return this.errno == Errno.OK;
  }

  get value(): T {
    if (this.errno != Errno.OK) throw new Error(errnoName(this.errno));
    return this.given;
  }

  or(other: T): T {
    return this.errno == Errno.OK ? this.given : other;
  }
}
