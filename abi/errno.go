package abi

import "github.com/ecotone-dev/ecotone/abi/errno"

// Errno is what a guest sees of a refused or failed host call: the call returns
// -Errno. It is [errno.Errno]; guests import that small package, hosts this one.
type Errno = errno.Errno

// The numbers, as [errno] documents them.
const (
	EINVAL     = errno.EINVAL
	EFAULT     = errno.EFAULT
	EDENIED    = errno.EDENIED
	ENOENT     = errno.ENOENT
	EEXIST     = errno.EEXIST
	EVERSION   = errno.EVERSION
	EREAD      = errno.EREAD
	ENOTEMPTY  = errno.ENOTEMPTY
	ENOTREG    = errno.ENOTREG
	ENOMATCH   = errno.ENOMATCH
	EAMBIGUOUS = errno.EAMBIGUOUS
	EEMPTY     = errno.EEMPTY
	ESAME      = errno.ESAME
	EDELETED   = errno.EDELETED
	ETOOBIG    = errno.ETOOBIG
	EQUOTA     = errno.EQUOTA
	EUNAVAIL   = errno.EUNAVAIL
	ETIMEOUT   = errno.ETIMEOUT
	ECANCELED  = errno.ECANCELED
	EIO        = errno.EIO
	ESECRET    = errno.ESECRET
	ECONFLICT  = errno.ECONFLICT
	ECHILD     = errno.ECHILD
	EINTERNAL  = errno.EINTERNAL
)

// ErrnoInfo is one row of the table of error numbers.
type ErrnoInfo = errno.Info

// Errnos returns the table in ascending order. The caller must not change it.
func Errnos() []ErrnoInfo { return errno.All() }
