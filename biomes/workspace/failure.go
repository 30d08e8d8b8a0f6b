package main

import (
	"errors"

	"github.com/ecotone-dev/ecotone/guest"
)

// names says the host's refusals as the caller of a file tool knows them.
var names = map[guest.Errno]guest.Failure{
	guest.EINVAL:     {Code: "PATH_INVALID", Message: "the path or pattern is not of the documented form: paths are relative and stay in the workspace"},
	guest.EDENIED:    {Code: "DENIED", Message: "this invocation may not do that"},
	guest.ENOENT:     {Code: "FILE_NOT_FOUND", Message: "there is no such file, or this invocation may not see it"},
	guest.EEXIST:     {Code: "FILE_EXISTS", Message: "the destination is there already and is not overwritten"},
	guest.EVERSION:   {Code: "VERSION_MISMATCH", Message: "the file changed after it was read: read it again"},
	guest.EREAD:      {Code: "READ_REQUIRED", Message: "the file exists: read it before it is overwritten"},
	guest.EDELETED:   {Code: "DELETED_SINCE_READ", Message: "the file was deleted after it was read"},
	guest.ENOTEMPTY:  {Code: "DIRECTORY_NOT_EMPTY", Message: "only empty directories are removed"},
	guest.ENOTREG:    {Code: "NOT_REGULAR", Message: "this works on regular files only, or a part of the path is a file"},
	guest.ENOMATCH:   {Code: "EDIT_NO_MATCH", Message: "the text to replace occurs 0 times"},
	guest.EAMBIGUOUS: {Code: "EDIT_AMBIGUOUS", Message: "the text to replace occurs more than once: give more of it, or set all"},
	guest.EEMPTY:     {Code: "EDIT_EMPTY", Message: "the text to replace is empty"},
	guest.ESAME:      {Code: "EDIT_IDENTICAL", Message: "the old and the new text are the same"},
	guest.ETOOBIG:    {Code: "FILE_TOO_LARGE", Message: "the file would be larger than allowed"},
	guest.EQUOTA:     {Code: "QUOTA_EXCEEDED", Message: "the workspace or a budget of the invocation is used up"},
	guest.EUNAVAIL:   {Code: "NOT_READY", Message: "the session has no workspace, or it cannot answer now"},
}

// named gives the host's refusals their names.
func named[In, Out any](do func(In) (Out, error)) func(In) (Out, error) {
	return func(in In) (Out, error) {
		out, err := do(in)
		return out, failure(err)
	}
}

func failure(err error) error {
	var own *guest.Failure
	var many *guest.AmbiguousError
	var refused guest.Errno
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &many):
		return guest.Failf(names[guest.EAMBIGUOUS].Code, "the text to replace occurs %d times: give more of it, or set all", many.Count)
	case errors.As(err, &refused):
		if f, ok := names[refused]; ok {
			f.Cause = err
			return &f
		}
	}
	return err
}
