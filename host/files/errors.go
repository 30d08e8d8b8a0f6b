package files

import (
	"context"
	"errors"
	"io/fs"

	"github.com/ecotone-dev/ecotone/abi"
)

// Refusals are constants: what they say does not depend on what is there (S5).
func errAbsent() error { return abi.Errorf(abi.CodeFileNotFound, "there is no such file") }

func errNotRegular() error {
	return abi.Errorf(abi.CodeNotRegular, "the path does not lead to a regular file").
		WithHint("directories, links, devices and files with more than one name are refused")
}

func errExists() error {
	return abi.Errorf(abi.CodeFileExists, "the name is taken").WithHint("choose another name, or read and write the file")
}

func errReadRequired() error {
	return abi.Errorf(abi.CodeReadRequired, "the file is there and was not read in this session").
		WithHint("read it, then write")
}

func errVersion() error {
	return abi.Errorf(abi.CodeVersionMismatch, "the file is not the version that was named").WithHint("read it again")
}

func errDeleted() error {
	return abi.Errorf(abi.CodeDeletedSinceRead, "the file was deleted after it was read").
		WithHint("create it, if it should be there")
}

func errLedger() error {
	return abi.Errorf(abi.CodeLedgerUnavailable, "what this session read cannot be determined now")
}

func errTooLarge(limit int64) error {
	return abi.Errorf(abi.CodeFileTooLarge, "the file would be larger than %d bytes", limit)
}

func errFull(what string, limit int64) error {
	return abi.Errorf(abi.CodeWorkspaceFull, "the workspace would have more than %d %s", limit, what)
}

// diskError keeps what the system said private.
func diskError(err error) error {
	switch {
	case noRoom(err):
		return abi.Errorf(abi.CodeWorkspaceFull, "there is no room on the disk: %w", err)
	case errors.Is(err, errSwapped), isAbsent(err):
		return abi.Errorf(abi.CodeConflict, "the workspace changes outside the gateway: %w", err)
	}
	return abi.Errorf(abi.CodeInternal, "the workspace could not be read or written: %w", err)
}

// contextError says why ctx has ended.
func contextError(ctx context.Context) error {
	var own *abi.Error
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &own):
		return own
	case errors.Is(cause, context.DeadlineExceeded):
		return abi.Errorf(abi.CodeDeadline, "the deadline passed while files were used")
	}
	return abi.Errorf(abi.CodeCanceled, "the invocation was cancelled while files were used")
}

func applyError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return contextError(ctx)
	}
	return abi.Errorf(abi.CodeNotReady, "the records of the workspace cannot be written: %w", err)
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
