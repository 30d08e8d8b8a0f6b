package files

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// M11
func TestOneFileHasOnePath(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "./a": "a", "a/../a": "a", "a/.": "a", "a/": "a", ".//a": "a", "x/../a/b/..": "a",
		".": ".", "./": ".", "a/..": ".", "a/b/../../a": "a",
		"%2e%2e": "%2e%2e", "..a": "..a", "a..b/c": "a..b/c", ".hidden": ".hidden", "konsole": "konsole",
		strings.Repeat("a", 255): strings.Repeat("a", 255), strings.Repeat("d/", 31) + "f": strings.Repeat("d/", 31) + "f",
		"übung/日本": "übung/日本",
	} {
		if got, err := Clean(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}

// PF-C5
func TestPathsThatAreNoPaths(t *testing.T) {
	for _, in := range []string{
		"", "/", "/etc/passwd", "..", "../x", "a/../../x", "../../x.wasm", "a/../..",
		"a\x00b", "a\r\nb", "a\x1bb", "a\x7fb", "a\u0085b", "a\u202eb", "a\u2028b", "\xff", "a/\xc3",
		`a\b`, `..\x`, `C:\x`, "C:x", "a:b", "a*", "a?", `a"b`, "a<b", "a|b",
		"CON", "con.txt", "x/NUL", "nul.", "lpt1", "COM¹.a", "aux .c", "a.", "a ", "a./b",
		".ecotone", ".ECOTONE-x", "a/.ecotone-tmp",
		strings.Repeat("a", 256), strings.Repeat("a", 4096), strings.Repeat("d/", 32) + "f", strings.Repeat("abc/", 256) + "x",
	} {
		got, err := Clean(in)
		if abi.CodeOf(err) != abi.CodePathInvalid {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "./a/../b", "../x", "/x", "a\x00", "con.txt", "%2e%2e/x", "a/b/c/", "\xff", ".ecotone", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Clean(in)
		if err != nil {
			if abi.CodeOf(err) != abi.CodePathInvalid || got != "" {
				t.Fatalf("%q: %q, %v", in, got, err)
			}
			return
		}
		again, err := Clean(got)
		if err != nil || again != got {
			t.Fatalf("%q becomes %q and then %q, %v", in, got, again, err)
		}
		switch {
		case !filepath.IsLocal(got), strings.Contains(got, "//"), strings.ContainsAny(got, "\\\x00\n:"), !utf8.ValidString(got):
			t.Fatalf("%q became %q", in, got)
		case len(got) > MaxPathBytes, strings.Count(got, "/") >= MaxDepth:
			t.Fatalf("%q became %q, which is over a bound", in, got)
		}
		for name := range strings.SplitSeq(got, "/") {
			if name == ".." || len(name) > MaxComponentBytes || isReserved(name) || (name == "." && got != ".") {
				t.Fatalf("%q became %q", in, got)
			}
		}
	})
}
