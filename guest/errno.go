package guest

import "github.com/ecotone-dev/ecotone/abi/errno"

// Errno is a refused or failed host call. Every error of this package that came from the
// host is one, or wraps one.
type Errno = errno.Errno

// The error numbers of the ABI.
const (
	EINVAL     = errno.EINVAL     // an argument is not of the documented form
	EFAULT     = errno.EFAULT     // a pointer lies outside memory
	EDENIED    = errno.EDENIED    // refused by reach, grant, glob, flow or rule
	ENOENT     = errno.ENOENT     // absent, or above what this invocation may see
	EEXIST     = errno.EEXIST     // the destination is there already
	EVERSION   = errno.EVERSION   // changed since it was read
	EREAD      = errno.EREAD      // read it first
	ENOTEMPTY  = errno.ENOTEMPTY  // the directory is not empty
	ENOTREG    = errno.ENOTREG    // not a regular file
	ENOMATCH   = errno.ENOMATCH   // the text to replace does not occur
	EAMBIGUOUS = errno.EAMBIGUOUS // the text to replace occurs more than once
	EEMPTY     = errno.EEMPTY     // the text to replace is empty
	ESAME      = errno.ESAME      // old and new text are the same
	EDELETED   = errno.EDELETED   // deleted since it was read
	ETOOBIG    = errno.ETOOBIG    // one item is over its limit
	EQUOTA     = errno.EQUOTA     // a budget is used up
	EUNAVAIL   = errno.EUNAVAIL   // something needed is not ready
	ETIMEOUT   = errno.ETIMEOUT   // took too long
	ECANCELED  = errno.ECANCELED  // the invocation is cancelled or its authority withdrawn
	EIO        = errno.EIO        // the other side failed
	ESECRET    = errno.ESECRET    // the secret is absent or not for this use
	ECONFLICT  = errno.ECONFLICT  // the state assumed is not the state there is
	ECHILD     = errno.ECHILD     // the child invocation failed
	EINTERNAL  = errno.EINTERNAL  // the host failed
)
