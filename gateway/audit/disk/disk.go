// Package disk asks the operating system the two things the audit log needs to know about its
// directory: how much room is left, and whether another process has it open. It refuses to
// know what is stored there.
package disk

import "errors"

// ErrLocked means that another open file, in this or another process, holds the lock.
var ErrLocked = errors.New("disk: locked by another process")
