package audit

import "github.com/ecotone-dev/ecotone/abi"

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
	Offset int64  `json:"offset"`         // bytes into File
	Index  int64  `json:"index"`          // of the entry, or of the first entry in question; -1: none
	ID     string `json:"auditId,omitempty"`
	What   string `json:"what"`
}

// Report is the result of [Verify].
type Report struct {
	OK      bool     `json:"ok"`
	Origin  string   `json:"origin,omitempty"`
	Size    int64    `json:"size"` // entries that verified
	Root    string   `json:"root,omitempty"`
	Heads   int64    `json:"heads"`
	Files   int      `json:"files"`
	Against int64    `json:"against,omitempty"`   // size of the head that was given
	Tail    int64    `json:"tailBytes,omitempty"` // after the last head: never acknowledged
	Problem *Problem `json:"problem,omitempty"`
}

// Verify checks the log in dir ([Dir] of a data directory, or a copy of it) and changes nothing. It
// recomputes every leaf and the tree and checks every head. It needs no key but the public
// one, and reads no body. An error means that dir could not be read; what does not verify
// is in the report.
func Verify(dir string, o VerifyOptions) (Report, error) {
	return Report{}, abi.Errorf(abi.CodeNotReady, "the verifier is not built yet")
}
