// Package core is the part of the SDK that an invocation cannot do without: its input, its
// output, its failure, the log, the clock and randomness. It links neither encoding/json nor
// fmt, for modules that must be small; package guest has all of it and more.
package core

import (
	"github.com/ecotone-dev/ecotone/guest/internal/call"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
	_ "github.com/ecotone-dev/ecotone/guest/internal/warm" // its initialiser
)

// Bounds of what a capability says of its own failure, in bytes.
const (
	maxCode    = 64
	maxMessage = 4 << 10
)

// Level is how much a log record matters.
type Level int32

// The levels of the log.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// Input returns the invocation's input, one JSON value. Each call reads it anew.
func Input() ([]byte, error) {
	r, err := call.Body(imports.Input)
	return r.Body, err
}

// Output sets the invocation's output, one JSON value; a later call replaces it. ETOOBIG:
// it is over the environment's limit, and an earlier output is gone too.
func Output(data []byte) error {
	_, err := call.Do(func() int64 { return imports.Output(data) })
	return err
}

// Fail marks the invocation as failed, with the capability's own code (1 to 64 bytes of A-Z,
// 0-9 and _; anything else becomes FAILED) and a message, cut after 4 KiB. The output is
// dropped. The export returns afterwards as usual.
func Fail(code, message string) error {
	if !validCode(code) {
		code = "FAILED"
	}
	message = cut(message, maxMessage)
	_, err := call.Do(func() int64 { return imports.Error(code, message) })
	return err
}

func validCode(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= maxCode
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Log adds one record to the invocation's log. Control bytes are escaped, long lines cut,
// and records past the quota dropped, all by the host: logging never fails a capability.
func Log(level Level, message string) {
	_, _ = call.Do(func() int64 { return imports.Log(int32(level), message) })
}

// UnixNano is the host's clock: nanoseconds since 1970 in UTC, coarse, and 0 when the host
// no longer answers.
func UnixNano() int64 {
	n, _ := call.Do(imports.TimeNow)
	return max(n, 0)
}

// Random fills b from the host's cryptographic source. EQUOTA: the invocation used up its
// random bytes; b is not filled then.
func Random(b []byte) error {
	_, err := call.Do(func() int64 { return imports.Random(b) })
	return err
}
