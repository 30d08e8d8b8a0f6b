package vault

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func utf16Bytes(s string, little bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		if little {
			b.WriteByte(byte(u))
			b.WriteByte(byte(u >> 8))
		} else {
			b.WriteByte(byte(u >> 8))
			b.WriteByte(byte(u))
		}
	}
	return b.String()
}

func each(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func wrapped(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\r\n")
		s = s[n:]
	}
	return b.String() + s
}

// encodings are the ways an origin usually gives text back.
var encodings = map[string]func(string) string{
	"raw":           func(s string) string { return s },
	"upper":         strings.ToUpper,
	"lower":         strings.ToLower,
	"hex":           func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":           func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"spaced hex":    func(s string) string { return each(s, "%02x ") },
	"colon hex":     func(s string) string { return each(s, "%02X:") },
	"percent":       func(s string) string { return each(s, "%%%02X") },
	"query escape":  url.QueryEscape,
	"double escape": func(s string) string { return url.QueryEscape(each(s, "%%%02x")) },
	"json":          func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"json unicode":  func(s string) string { return each(s, `\u%04x`) },
	"slash escaped": func(s string) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`)
	},
	"x escapes":    func(s string) string { return each(s, `\x%02x`) },
	"html":         html.EscapeString,
	"html numeric": func(s string) string { return each(s, "&#%d;") },
	"utf-16le":     func(s string) string { return utf16Bytes(s, true) },
	"utf-16be":     func(s string) string { return utf16Bytes(s, false) },
	"base64 0":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 1":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("?" + s + "tail")) },
	"base64 2":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("k=" + s + "?")) },
	"base64url 0":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64url 1":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("?" + s)) },
	"base64url 2":  func(s string) string { return base64.URLEncoding.EncodeToString([]byte("k=" + s + "!")) },
	"mime base64":  func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte("x: "+s)), 20) },
	"json mime": func(s string) string {
		b, _ := json.Marshal(wrapped(base64.StdEncoding.EncodeToString([]byte("x: "+s)), 20))
		return string(b)
	},
	"basic auth": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
}

type failer interface{ Fatal(...any) }

func echo(t failer, s *scrubber, data []byte) bool {
	found, err := s.found(context.Background(), data)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An echo is found wherever it lies across the windows of the search, however long it is.
func TestScrubWindows(t *testing.T) {
	long := strings.Repeat("Az9-", MaxValueBytes/4)
	s := newScrubber([]byte(long))
	for name, encode := range map[string]func(string) string{"raw": encodings["raw"], "json unicode": encodings["json unicode"], "percent": encodings["percent"]} {
		e := encode(long)
		for _, at := range []int{0, window - len(e), window - len(e) + 1, window - len(e)/2, window - 1, window, window - overlap, 2*window - overlap - 5, 3 * window} {
			data := []byte(strings.Repeat(".", at) + e + strings.Repeat(".", 100))
			if !echo(t, s, data) {
				t.Errorf("%s at %d is not found", name, at)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.found(ctx, []byte(long)); err == nil {
		t.Error("an interrupted search gave an answer")
	}
}

// S15: an echo is found in any of the usual encodings, at any place.
func TestScrubFindsEncodings(t *testing.T) {
	values := []string{"0123456789abcdef", sentinel, `p/+a"b<c>&d\e%f=g?h:i`, "sk_live_" + strings.Repeat("aZ9", 40)}
	for _, v := range values {
		s := newScrubber([]byte(v))
		for name, encode := range encodings {
			for _, around := range [][2]string{{"", ""}, {"before", "after"}, {`{"a":"`, `"}`}, {strings.Repeat("x", 1001), "\n"}} {
				if got := around[0] + encode(v) + around[1]; !echo(t, s, []byte(got)) {
					t.Errorf("%s of a value of %d bytes is not found in %q…", name, len(v), around[0])
				}
			}
		}
		if echo(t, s, nil) || echo(t, s, []byte(v[:len(v)-1])) {
			t.Error("something else was found")
		}
	}
}

func TestScrubFindsAnyValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.StringMatching(`[!-~]{16,64}`).Draw(t, "value")
		before := rapid.StringMatching(`[ -~]{0,9}`).Draw(t, "before")
		for name, encode := range map[string]func(string) string{
			"raw": encodings["raw"], "hex": encodings["hex"], "percent": encodings["percent"], "json unicode": encodings["json unicode"],
			"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(before + s + before)) },
		} {
			if !echo(t, newScrubber([]byte(v)), []byte(encode(v))) {
				t.Fatalf("%s of %q is not found", name, v)
			}
		}
	})
}

// PF-F13: payloads that look like secrets and are not pass.
func TestScrubLeavesBenignDataAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := newScrubber([]byte(sentinel))
	for range 1000 {
		b := make([]byte, 64)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		body := fmt.Sprintf(`{"id":"%x-%x-%x","sha":"%x","key":"sk_live_%s","auth":"Bearer %s","near":"%s"}`,
			b[:4], b[4:6], b[6:12], b[:32], base64.RawURLEncoding.EncodeToString(b[:24]), base64.StdEncoding.EncodeToString(b), sentinel[:len(sentinel)-1])
		if echo(t, s, []byte(body)) {
			t.Fatalf("found in %s", body)
		}
	}
}

func BenchmarkScrub(b *testing.B) {
	s := newScrubber([]byte(sentinel))
	data := []byte(strings.Repeat(`{"id":"a%20b","text":"x \" y &amp; z"},`, 26_000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if echo(b, s, data) {
			b.Fatal("found")
		}
	}
}

// Whatever surrounds it, a plain echo is found, and no bytes upset the views.
func FuzzEcho(f *testing.F) {
	f.Add([]byte(`{"a":"\u00`), []byte(`%2`))
	f.Add([]byte("&#"), []byte(`\`))
	f.Add([]byte("%"), []byte{0, 0xff})
	f.Fuzz(func(t *testing.T, before, after []byte) {
		s := newScrubber([]byte(sentinel))
		if !echo(t, s, slices.Concat(before, []byte(sentinel), after)) {
			t.Fatalf("not found between %q and %q", before, after)
		}
		echo(t, s, slices.Concat(before, after))
	})
}
