// Package errno is what a guest sees of a refused or failed host call.
//
// It is a part of the contract in package abi, which names everything here again, and is
// apart from it so that a guest links a table of numbers instead of the decoders, grammars
// and catalogues of the whole contract: about a megabyte of WebAssembly.
package errno

import "strconv"

// Errno is what a guest sees of a refused or failed host call: the call returns
// -Errno. Numbers are part of the ABI and never change meaning. A refusal is a
// value, never a trap (PF-H13): the guest may go on without what it was refused.
type Errno int32

const (
	EINVAL     Errno = 1  // an argument is not of the documented form
	EFAULT     Errno = 2  // a pointer lies outside memory
	EDENIED    Errno = 3  // refused by reach, grant, glob, flow or rule
	ENOENT     Errno = 4  // absent, or above what this invocation may see
	EEXIST     Errno = 5  // the destination is there already
	EVERSION   Errno = 6  // changed since it was read
	EREAD      Errno = 7  // read it first
	ENOTEMPTY  Errno = 8  // the directory is not empty
	ENOTREG    Errno = 9  // not a regular file
	ENOMATCH   Errno = 10 // the text to replace does not occur
	EAMBIGUOUS Errno = 11 // the text to replace occurs more than once
	EEMPTY     Errno = 12 // the text to replace is empty
	ESAME      Errno = 13 // old and new text are the same
	EDELETED   Errno = 14 // deleted since it was read
	ETOOBIG    Errno = 15 // one item is over its limit
	EQUOTA     Errno = 16 // a budget is used up
	EUNAVAIL   Errno = 17 // something needed is not ready
	ETIMEOUT   Errno = 18 // took too long
	ECANCELED  Errno = 19 // the invocation is cancelled or its authority withdrawn
	EIO        Errno = 20 // the other side failed
	ESECRET    Errno = 21 // the secret is absent or not for this use: one answer for both
	ECONFLICT  Errno = 22 // the state assumed is not the state there is
	ECHILD     Errno = 23 // the child invocation failed; the result register holds its problem document
	EINTERNAL  Errno = 24 // the host failed
)

// Info is one row of the table of error numbers.
type Info struct {
	Errno   Errno
	Name    string
	Meaning string
}

var table = []Info{
	{EINVAL, "EINVAL", "an argument is not of the documented form"},
	{EFAULT, "EFAULT", "a pointer and length lie outside the guest's memory"},
	{EDENIED, "EDENIED", "refused by reach, grant, glob, information flow or rule"},
	{ENOENT, "ENOENT", "absent, or above what this invocation may see"},
	{EEXIST, "EEXIST", "the destination is there already"},
	{EVERSION, "EVERSION", "changed since it was read"},
	{EREAD, "EREAD", "an existing file must be read before it is overwritten"},
	{ENOTEMPTY, "ENOTEMPTY", "the directory is not empty"},
	{ENOTREG, "ENOTREG", "not a regular file"},
	{ENOMATCH, "ENOMATCH", "the text to replace does not occur"},
	{EAMBIGUOUS, "EAMBIGUOUS", "the text to replace occurs more than once; result_meta gives the count"},
	{EEMPTY, "EEMPTY", "the text to replace is empty"},
	{ESAME, "ESAME", "old and new text are the same"},
	{EDELETED, "EDELETED", "deleted since it was read"},
	{ETOOBIG, "ETOOBIG", "one item is over its limit"},
	{EQUOTA, "EQUOTA", "a budget of the invocation or of the store is used up"},
	{EUNAVAIL, "EUNAVAIL", "something needed is not ready"},
	{ETIMEOUT, "ETIMEOUT", "it took too long"},
	{ECANCELED, "ECANCELED", "the invocation is cancelled or its authority was withdrawn"},
	{EIO, "EIO", "the other side failed"},
	{ESECRET, "ESECRET", "the secret is absent or not for this use; one answer for both"},
	{ECONFLICT, "ECONFLICT", "the state assumed is not the state there is"},
	{ECHILD, "ECHILD", "the child invocation failed; the result register holds its problem document"},
	{EINTERNAL, "EINTERNAL", "the host failed"},
}

// All returns the table in ascending order. The caller must not change it.
func All() []Info { return table }

func (e Errno) String() string {
	if e >= 1 && int(e) <= len(table) {
		return table[e-1].Name
	}
	return "errno " + strconv.Itoa(int(e))
}

// Error makes an Errno usable as a Go error in guests.
func (e Errno) Error() string {
	if e >= 1 && int(e) <= len(table) {
		return table[e-1].Name + ": " + table[e-1].Meaning
	}
	return e.String()
}
