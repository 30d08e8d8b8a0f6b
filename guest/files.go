package guest

import (
	"errors"

	"github.com/ecotone-dev/ecotone/guest/internal/call"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
)

// Files is the workspace of the session. Paths are relative, with forward slashes; one that
// is absolute or leaves the workspace is EINVAL. ENOENT is both absent and above what this
// invocation may see. A session without a workspace refuses every call.
var Files Workspace

// Workspace is the type of [Files].
type Workspace struct{}

// Info describes a file or directory.
type Info struct {
	Kind           string `json:"kind"` // file or directory
	Size           int64  `json:"size"`
	Version        string `json:"version"` // opaque and random
	Classification string `json:"classification"`
}

// Entry is one name of a directory.
type Entry struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Size int64  `json:"size"`
}

// Chunk is a part of a file.
type Chunk struct {
	Data           []byte `json:"-"`
	Size           int64  `json:"size"` // of the whole file
	Version        string `json:"version"`
	Classification string `json:"classification"`
	EOF            bool   `json:"eof"` // Data reaches the file's end
}

// Match is one matching line.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// Edited says what an edit did.
type Edited struct {
	Count   int    `json:"count"`
	Version string `json:"version"`
}

// AmbiguousError is an edit whose text occurs more than once. It is EAMBIGUOUS.
type AmbiguousError struct{ Count int }

func (e *AmbiguousError) Error() string { return EAMBIGUOUS.Error() }

// Unwrap returns EAMBIGUOUS.
func (e *AmbiguousError) Unwrap() error { return EAMBIGUOUS }

// Stat describes a file or directory; "." is the workspace.
func (w Workspace) Stat(path string) (Info, error) {
	r, err := call.Body(func() int64 { return imports.FileStat(path) })
	if err != nil {
		return Info{}, err
	}
	var info Info
	return info, describe(r.Body, &info)
}

// Read reads at most n bytes from offset off. The version read is what a later Write or Edit
// of this session is compared with.
func (w Workspace) Read(path string, off int64, n int) (Chunk, error) {
	r, err := call.Both(func() int64 { return imports.FileRead(path, off, n) })
	if err != nil {
		return Chunk{}, err
	}
	c := Chunk{Data: r.Body}
	return c, describe(r.Meta, &c)
}

// readStep is how much ReadAll asks for at once, in bytes.
const readStep = 256 << 10

// ReadAll reads a whole file. EVERSION: it changed while it was being read.
func (w Workspace) ReadAll(path string) ([]byte, error) {
	var data []byte
	version := ""
	for {
		c, err := w.Read(path, int64(len(data)), readStep)
		if err != nil {
			return nil, err
		}
		if version != "" && c.Version != version {
			return nil, EVERSION
		}
		version = c.Version
		data = append(data, c.Data...)
		if c.EOF || len(c.Data) == 0 {
			return data, nil
		}
	}
}

// List returns the entries of a directory in name order, after the name after ("" for the
// first), at most limit of them (0 for as many as the host lists at once), and whether there
// are more.
func (w Workspace) List(path, after string, limit int) (entries []Entry, more bool, err error) {
	more, err = listing(&entries, func() int64 { return imports.FileList(path, after, limit) })
	return entries, more, err
}

// Create makes a file that must not exist, with the directories above it, and returns its
// version. EEXIST: it does; of concurrent creators exactly one succeeds.
func (w Workspace) Create(path string, data []byte) (version string, err error) {
	return versioned(func() int64 { return imports.FileCreate(path, data) })
}

// Write makes the file, or replaces the version this session read or wrote last, and returns
// the new version. EREAD: it exists and was not read; EVERSION: it changed since; EDELETED: it
// was deleted since.
func (w Workspace) Write(path string, data []byte) (version string, err error) {
	return versioned(func() int64 { return imports.FileWrite(path, data) })
}

// Replace replaces exactly the named version and returns the new one. No version means any.
func (w Workspace) Replace(path, version string, data []byte) (newVersion string, err error) {
	return versioned(func() int64 { return imports.FileReplace(path, version, data) })
}

func versioned(f func() int64) (string, error) {
	r, err := call.Meta(f)
	if err != nil {
		return "", err
	}
	var meta struct {
		Version string `json:"version"`
	}
	return meta.Version, describe(r.Meta, &meta)
}

// Edit replaces one exact occurrence of old, or with all every one. The file must have been
// read in this session. More than one occurrence without all is an [*AmbiguousError].
func (w Workspace) Edit(path, old, new string, all bool) (Edited, error) {
	r, err := call.Meta(func() int64 { return imports.FileEdit(path, old, new, all) })
	var done Edited
	if err != nil {
		if errors.Is(err, EAMBIGUOUS) && describe(r.Meta, &done) == nil {
			err = &AmbiguousError{Count: done.Count}
		}
		return Edited{}, err
	}
	done.Count = int(r.Value)
	return done, describe(r.Meta, &done)
}

// Copy copies a regular file. It never overwrites, needs no prior read and counts as none.
func (w Workspace) Copy(from, to string) error {
	_, err := call.Do(func() int64 { return imports.FileCopy(from, to) })
	return err
}

// Move moves a regular file. It never overwrites.
func (w Workspace) Move(from, to string) error {
	_, err := call.Do(func() int64 { return imports.FileMove(from, to) })
	return err
}

// Remove removes a file or an empty directory, never more.
func (w Workspace) Remove(path string) error {
	_, err := call.Do(func() int64 { return imports.FileRemove(path) })
	return err
}

// Mkdir makes a directory that must not exist, with the directories above it.
func (w Workspace) Mkdir(path string) error {
	_, err := call.Do(func() int64 { return imports.FileMkdir(path) })
	return err
}

// Grep returns the lines that match pattern (RE2, at most 256 bytes) in the files that glob
// names, at most limit of them (0 for as many as the host lists at once), and whether there
// are more.
func (w Workspace) Grep(pattern, glob string, limit int) (matches []Match, more bool, err error) {
	more, err = listing(&matches, func() int64 { return imports.FileGrep(pattern, glob, limit) })
	return matches, more, err
}

// Glob returns the paths that match glob (** spans directories), at most limit of them (0 for
// as many as the host lists at once), and whether there are more.
func (w Workspace) Glob(glob string, limit int) (paths []string, more bool, err error) {
	more, err = listing(&paths, func() int64 { return imports.FileGlob(glob, limit) })
	return paths, more, err
}
