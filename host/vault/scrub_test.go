package vault

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
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
	"basic auth":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
}

// S15: an echo is found in any of the usual encodings, at any place.
func TestScrubFindsEncodings(t *testing.T) {
	values := []string{"0123456789abcdef", sentinel, `p/+a"b<c>&d\e%f=g?h:i`, "sk_live_" + strings.Repeat("aZ9", 40)}
	for _, v := range values {
		s := newScrubber([]byte(v))
		for name, encode := range encodings {
			for _, around := range [][2]string{{"", ""}, {"before", "after"}, {`{"a":"`, `"}`}, {strings.Repeat("x", 1001), "\n"}} {
				if got := around[0] + encode(v) + around[1]; !s.found([]byte(got)) {
					t.Errorf("%s of a value of %d bytes is not found in %q…", name, len(v), around[0])
				}
			}
		}
		if s.found(nil) || s.found([]byte(v[:len(v)-1])) {
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
			if !newScrubber([]byte(v)).found([]byte(encode(v))) {
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
		if s.found([]byte(body)) {
			t.Fatalf("found in %s", body)
		}
	}
}

func BenchmarkScrub(b *testing.B) {
	s := newScrubber([]byte(sentinel))
	data := []byte(strings.Repeat(`{"id":"a%20b","text":"x \" y &amp; z"},`, 26_000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if s.found(data) {
			b.Fatal("found")
		}
	}
}
