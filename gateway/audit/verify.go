package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
)

// VerifyOptions configure [Verify].
type VerifyOptions struct {
	// Head is a signed head that was kept elsewhere. The log must still contain exactly what it
	// covered (S8). nil checks the log against itself only.
	Head []byte
	// Key is a verifier key that was kept elsewhere; "" takes key.pub beside the log.
	Key string
}

// Problem is the first thing that does not verify.
type Problem struct {
	File   string `json:"file,omitempty"` // base name
	Offset int64  `json:"offset"`         // bytes into File, of the entry or head in question
	Index  int64  `json:"index"`          // of the entry, or of the first of several
	ID     string `json:"auditId,omitempty"`
	What   string `json:"what"`
}

// Report is the result of [Verify].
type Report struct {
	OK      bool   `json:"ok"`
	Origin  string `json:"origin,omitempty"`
	Size    int64  `json:"size"`           // entries that the last head covers
	Root    string `json:"root,omitempty"` // of the tree over them, base64
	Heads   int64  `json:"heads"`          // that verified
	Files   int    `json:"files"`
	Against int64  `json:"against,omitempty"` // size of the head from elsewhere
	// Unsigned counts the whole entries after the last head. They may have been acknowledged; their
	// order, times and checksums are right, and only the organisations' keys can say more.
	Unsigned int64    `json:"unsignedEntries,omitempty"`
	Tail     int64    `json:"tailBytes,omitempty"` // after those: torn by a crash or under way, cut by the next start
	Problem  *Problem `json:"problem,omitempty"`
}

// Verify checks the log in dir ([Dir] of a data directory, or a copy of it) and changes nothing. It
// recomputes every leaf and the tree and checks every head. It needs no key but the public
// one, and reads no body. Entries after the last head, which a crash or a copy of a running log
// leaves, are counted and are no problem up to 16 MiB; a log that was closed has none. An error
// means that dir could not be read; what does not verify is in the report.
func Verify(dir string, o VerifyOptions) (Report, error) {
	if o.Key == "" {
		key, err := os.ReadFile(filepath.Join(dir, pubName))
		if errors.Is(err, fs.ErrNotExist) {
			return Report{}, abi.Errorf(abi.CodeNotFound, "there is no audit log here: %s is missing", pubName).WithCause(err)
		}
		if err != nil {
			return Report{}, abi.Errorf(abi.CodeInternal, "the audit log cannot be read").WithCause(err)
		}
		o.Key = string(key)
	}
	v, err := parseVerifier(o.Key)
	if err != nil {
		return Report{Problem: &Problem{File: pubName, Index: -1, What: "the public key is malformed"}}, nil
	}
	s := scan{dir: dir, verifier: v, allSigs: true}
	if o.Head != nil {
		h, err := openHead(v, o.Head)
		if err != nil {
			return Report{Origin: v.Name(), Problem: &Problem{Index: -1, What: "the head from elsewhere: " + err.Error()}}, nil
		}
		s.against = &h
	}
	if err := s.run(); err != nil {
		return Report{}, abi.Errorf(abi.CodeInternal, "the audit log cannot be read").WithCause(err)
	}
	if s.heads == 0 && s.problem == nil {
		s.fail("", 0, 0, "", "the log has no signed head")
	}
	r := Report{
		OK: s.problem == nil, Origin: v.Name(), Size: max(s.last.size, 0), Heads: s.heads, Files: s.files,
		Unsigned: s.unsigned, Tail: s.torn, Problem: s.problem,
	}
	if s.heads > 0 {
		r.Root = s.last.root.String()
	}
	if s.against != nil {
		r.Against = s.against.size
	}
	return r, nil
}
