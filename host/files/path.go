package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of a path.
const (
	MaxPathBytes      = 1024
	MaxComponentBytes = 255
	MaxDepth          = 32
)

// RootPath is the canonical path of the workspace itself.
const RootPath = "."

// reserved begins the names of the host's own files in a workspace, in any case of letters.
const reserved = ".ecotone"

// Clean turns a guest's path into its canonical form without looking at any file: `./a`,
// `a` and `a/../a` are one path (M11). Nothing is decoded: a percent sign is a percent sign.
//
// PATH_INVALID are paths that are empty, absolute or leave the workspace; that have a
// backslash, control or bidirectional formatting characters, invalid UTF-8 or what Windows
// gives a meaning to; that are longer or deeper than the bounds above; and names reserved
// for the host. The rules are those of all platforms together, so that a workspace means
// the same everywhere.
func Clean(p string) (string, error) {
	switch {
	case p == "":
		return "", badPath(p, "it is empty")
	case len(p) > MaxPathBytes:
		return "", badPath(p, "it is longer than 1024 bytes")
	case !utf8.ValidString(p):
		return "", badPath(p, "it is not valid UTF-8")
	case p[0] == '/':
		return "", badPath(p, "it is absolute")
	}
	if i := strings.IndexFunc(p, forbidden); i >= 0 {
		r, _ := utf8.DecodeRuneInString(p[i:])
		return "", badPath(p, "it has the character "+abi.Quote(string(r)))
	}
	c := path.Clean(p)
	if c == ".." || strings.HasPrefix(c, "../") {
		return "", badPath(p, "it leaves the workspace")
	}
	if c == RootPath {
		return c, nil
	}
	depth := 0
	for name := range strings.SplitSeq(c, "/") {
		if depth++; depth > MaxDepth {
			return "", badPath(p, "it is deeper than 32 directories")
		}
		if why := badName(name); why != "" {
			return "", badPath(p, why)
		}
	}
	return c, nil
}

func badPath(p, why string) error {
	return abi.Errorf(abi.CodePathInvalid, "%s is not a path: %s", abi.Quote(p), why).
		WithHint("paths are relative to the workspace and written with forward slashes, like reports/2026/q1.md")
}

// forbidden reports whether no path may have r: controls, what reorders text that is shown
// (S17), and the characters Windows gives a meaning to.
func forbidden(r rune) bool {
	switch {
	case r == '\\', r == ':', r == '*', r == '?', r == '"', r == '<', r == '>', r == '|':
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.IsControl(r)
}

// devices are the names Windows opens as devices, whatever follows a dot.
var devices = func() map[string]bool {
	m := map[string]bool{"con": true, "prn": true, "aux": true, "nul": true, "conin$": true, "conout$": true}
	for _, d := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"} {
		m["com"+d], m["lpt"+d] = true, true
	}
	return m
}()

// badName says why name cannot be a component, or "".
func badName(name string) string {
	low := strings.ToLower(name)
	stem, _, _ := strings.Cut(low, ".")
	switch {
	case len(name) > MaxComponentBytes:
		return "a name in it is longer than 255 bytes"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a name in it ends with a dot or a space"
	case devices[strings.TrimRight(stem, " ")]:
		return "a name in it is a device on some systems"
	case isReserved(name):
		return "a name in it is reserved for the host"
	}
	return ""
}

func isReserved(name string) bool {
	return len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved)
}
