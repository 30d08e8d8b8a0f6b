package servertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// echoing is a gateway with test:echo.do@1, which user:alice may invoke in sandbox.
func echoing(t testing.TB, options ...func(*server.Options)) (*servertest.Gateway, *servertest.Session) {
	t.Helper()
	g := servertest.Start(t, options...)
	g.Upload(w.Echo(w.Manifest("echo", w.Provide("test:echo.do@1", "run", abi.ReachOwner)))).Want(201)
	g.Grant("user:alice", "test:echo.do@1", "sandbox")
	return g, g.Open("user:alice", "sandbox", nil)
}

// allRows counts the rows of invocations and refusals, wherever they are kept, as far as 500 a
// kind and organisation go.
func allRows(g *servertest.Gateway) int {
	n := 0
	for _, kind := range []string{"invocation", "refused"} {
		for _, org := range []string{"default", "system"} {
			n += len(g.Rows("&kind=" + kind + "&org=" + org))
		}
	}
	return n
}

// request is a well-formed invocation of test:echo.do@1, before it is spoilt.
func request(g *servertest.Gateway, s *servertest.Session, body string) string {
	return "POST /v1/invoke/test:echo.do@1 HTTP/1.1\r\nHost: " + strings.TrimPrefix(g.Invoke, "http://") +
		"\r\nAuthorization: Bearer " + s.Token + "\r\nContent-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\nConnection: close\r\n\r\n" + body
}

// Requests that are not exactly what the contract says are answered with a problem document
// that says what was expected, each has its row, and no guest is started.
// PF-A4, PF-A9, PF-A13, PF-G1, PF-H15, X27, X29, S7
func TestDataTransport(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	good := request(g, s, `{"n":1}`)
	edit := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("the request has no %q", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	plus := func(header string) string { return edit("Connection: close", header+"\r\nConnection: close") }
	body := func(b string) string { return request(g, s, b) }
	typed := func(contentType string) string { return edit("application/json", contentType) }
	const any = abi.Code("any")
	if r := sendRaw(t, g.Invoke, good); r == nil || r.Status != 200 || string(r.Body) != `{"n":1}` {
		t.Fatalf("the request before it is spoilt: %+v", r)
	}
	for _, ok := range []string{
		edit("test:echo.do@1", "test%3Aecho.do%401"), typed("application/json; charset=utf-8"), typed("Application/JSON; Charset=UTF-8"),
		plus("Expect: 100-continue"), plus("traceparent: nonsense"),
	} {
		c := dialRaw(t, g.Invoke)
		_, _ = io.WriteString(c, ok)
		r := readRaw(t, c)
		if r != nil && r.Status == 100 {
			r = readRaw(t, c)
		}
		if r == nil || r.Status != 200 {
			t.Errorf("refused: %.120q: %+v", ok, r)
		}
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	started, rows, answers := g.Server.Started(), allRows(g), 0
	for _, c := range []struct {
		name, send string
		want       abi.Code
	}{
		// HTTP itself.
		{"garbage", "garbage\r\n\r\n", any},
		{"a version of the future", edit("HTTP/1.1", "HTTP/9.9"), abi.CodeInvalidRequest},
		{"no version", edit(" HTTP/1.1", ""), any},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", any},
		{"a header without a colon", plus("Nonsense"), any},
		{"a space before the colon", plus("X-A : b"), any},
		{"a NUL in a header", plus("X-A: b\x00c"), any},
		{"two lengths", plus("Content-Length: 3"), any},
		{"a negative length", edit("Content-Length: 7", "Content-Length: -7"), any},
		{"length and chunks", plus("Transfer-Encoding: chunked"), any},
		{"an unknown coding", edit("Content-Length: 7", "Transfer-Encoding: gzip"), any},
		{"a huge head", plus("X-A: " + strings.Repeat("a", 32<<10)), abi.CodePayloadTooLarge},
		{"many headers", plus(strings.Repeat("X-A: b\r\n", 4000) + "X-B: c"), abi.CodePayloadTooLarge},
		{"a huge target", edit("/v1/invoke/", "/v1/invoke/"+strings.Repeat("a", 32<<10)), abi.CodePayloadTooLarge},
		// Who it is for.
		{"no host", edit("Host: "+strings.TrimPrefix(g.Invoke, "http://")+"\r\n", ""), any},
		{"another host", edit("Host: 127.0.0.1", "Host: evil.example"), abi.CodeHostRefused},
		{"another host in the target", edit("POST /", "POST http://evil.example/"), abi.CodeHostRefused},
		{"two hosts", plus("Host: evil.example"), any},
		{"a page's origin", plus("Origin: https://evil.example"), abi.CodeOriginRefused},
		{"a cross-site fetch", plus("Sec-Fetch-Site: cross-site"), abi.CodeOriginRefused},
		// Routes.
		{"another method", edit("POST", "PUT"), abi.CodeMethodNotAllowed},
		{"a method in small letters", edit("POST", "post"), abi.CodeMethodNotAllowed},
		{"no such path", edit("/v1/invoke", "/v2/invoke"), abi.CodeNotFound},
		{"the root", edit("/v1/invoke/test:echo.do@1", "/"), abi.CodeNotFound},
		{"a path with dots", edit("/v1/invoke/", "/v1/x/../invoke/"), abi.CodeNotFound},
		{"a doubled slash", edit("/v1/invoke/", "//v1/invoke/"), abi.CodeNotFound},
		{"a trailing slash", edit("@1 ", "@1/ "), abi.CodeNotFound},
		{"a query", edit("@1 ", "@1?environment=system "), abi.CodeInvalidRequest},
		{"a bare question mark", edit("@1 ", "@1?a "), abi.CodeInvalidRequest},
		{"an encoded slash in the ref", edit("echo.do", "..%2fecho.do"), abi.CodeInvalidRequest},
		{"a NUL in the ref", edit("echo.do", "echo%00.do"), abi.CodeInvalidRequest},
		{"a newline in the ref", edit("echo.do", "echo%0a.do"), abi.CodeInvalidRequest},
		{"a bad escape", edit("echo.do", "echo%zz.do"), abi.CodeNotFound},
		{"an upper-case ref", edit("echo.do", "Echo.do"), abi.CodeInvalidRequest},
		{"an unknown ref", edit("echo.do", "other.do"), abi.CodeMissingGrant},
		// Credentials.
		{"no credential", edit("Authorization: Bearer "+s.Token+"\r\n", ""), abi.CodeUnauthenticated},
		{"another scheme", edit("Bearer ", "Basic "), abi.CodeUnauthenticated},
		{"a wrong token", edit(s.Token, s.Token[:len(s.Token)-4]+"AAAA"), abi.CodeUnauthenticated},
		{"a principal's token", edit(s.Token, g.Operator), abi.CodeForbidden},
		{"two credentials", plus("Authorization: Bearer " + s.Token), abi.CodeInvalidRequest},
		// Headers of the contract.
		{"the environment as a header", plus("Ecotone-Environment: environment:system"), abi.CodeInvalidRequest},
		{"an unknown header of ours", plus("ecotone-x: y"), abi.CodeInvalidRequest},
		{"a label that is none", plus("Ecotone-Classification: cosmic"), abi.CodeInvalidRequest},
		{"an empty label", plus("Ecotone-Classification:"), abi.CodeInvalidRequest},
		{"two labels", plus("Ecotone-Classification: public\r\nEcotone-Classification: secret"), abi.CodeInvalidRequest},
		{"two deadlines", plus("Ecotone-Deadline-Ms: 1000\r\nEcotone-Deadline-Ms: 1"), abi.CodeInvalidRequest},
		{"a deadline of zero", plus("Ecotone-Deadline-Ms: 0"), abi.CodeInvalidRequest},
		{"a negative deadline", plus("Ecotone-Deadline-Ms: -1"), abi.CodeInvalidRequest},
		{"a deadline that is no number", plus("Ecotone-Deadline-Ms: 1e3"), abi.CodeInvalidRequest},
		{"a padded deadline", plus("Ecotone-Deadline-Ms: 007"), abi.CodeInvalidRequest},
		{"a deadline past the hard limit", plus("Ecotone-Deadline-Ms: 99999999999999999999"), abi.CodeInvalidRequest},
		{"idempotency", plus("Idempotency-Key: 1"), abi.CodeIdempotencyUnbuilt},
		// What the body is.
		{"text", typed("text/plain"), abi.CodeUnsupportedMedia},
		{"a form", typed("application/x-www-form-urlencoded"), abi.CodeUnsupportedMedia},
		{"a multipart", typed("multipart/form-data; boundary=x"), abi.CodeUnsupportedMedia},
		{"a relative of JSON", typed("application/problem+json"), abi.CodeUnsupportedMedia},
		{"another charset", typed("application/json; charset=latin1"), abi.CodeUnsupportedMedia},
		{"another parameter", typed("application/json; v=1"), abi.CodeUnsupportedMedia},
		{"two types in one", typed("application/json, text/plain"), abi.CodeUnsupportedMedia},
		{"no type", edit("Content-Type: application/json\r\n", ""), abi.CodeUnsupportedMedia},
		{"two types", plus("Content-Type: text/plain"), abi.CodeInvalidRequest},
		{"two types, the other first", edit("Content-Type:", "content-type: text/plain\r\nContent-Type:"), abi.CodeInvalidRequest},
		{"gzip", plus("Content-Encoding: gzip"), abi.CodeUnsupportedMedia},
		// The body.
		{"no body", body(""), abi.CodeInvalidJSON},
		{"a duplicate key", body(`{"path":"ok","path":"secret"}`), abi.CodeInvalidJSON},
		{"a duplicate key spelt otherwise", body(`{"a":{"path":1,"p\u0061th":2}}`), abi.CodeInvalidJSON},
		{"deep nesting", body(deep), abi.CodeInvalidJSON},
		{"invalid UTF-8", body("\"\xff\""), abi.CodeInvalidJSON},
		{"trailing data", body(`{} {}`), abi.CodeInvalidJSON},
		{"a byte order mark", body("\ufeff{}"), abi.CodeInvalidJSON},
		{"a comment", body(`{} // {}`), abi.CodeInvalidJSON},
		{"not a number", body(`NaN`), abi.CodeInvalidJSON},
		{"a control character", body("\"a\nb\""), abi.CodeInvalidJSON},
		{"cut short", body(`{"a":`), abi.CodeInvalidJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sendRaw(t, g.Invoke, c.send)
			if r == nil {
				if c.want != any {
					t.Error("no answer")
				}
				return
			}
			answers++
			if p := wellFormed(t, *r); c.want != any {
				r.Refused(c.want)
			} else if r.Status < 400 || r.Status >= 500 {
				t.Errorf("%d %v", r.Status, p)
			}
			if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Server") != "" {
				t.Errorf("%v", r.Header)
			}
			var p struct{ AuditID string }
			if _ = json.Unmarshal(r.Body, &p); p.AuditID == "" {
				t.Errorf("no audit id in %s", r.Body)
			}
		})
	}
	if n := g.Server.Started() - started; n != 0 {
		t.Errorf("%d guests were started", n)
	}
	if n := allRows(g) - rows; n != answers {
		t.Errorf("%d answers, %d rows", answers, n)
	}
	s.Invoke("test:echo.do@1", map[string]int{"n": 1}).Want(200)
}

// PF-D17: a body past what any environment takes is refused by its head, or as soon as its
// chunks are past it, and less is taken from someone without a session's token.
func TestDataOversized(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	head := func(token, length string) string {
		r := request(g, s, "")
		r = strings.Replace(r, "Content-Length: 0", length, 1)
		return strings.Replace(r, s.Token, token, 1)
	}
	if r := sendRaw(t, g.Invoke, head(s.Token, "Content-Length: 1099511627776")); r == nil || r.Code() != abi.CodePayloadTooLarge {
		t.Errorf("by its length: %+v", r)
	}
	for _, c := range []struct {
		token string
		most  int
	}{{s.Token, 1 << 20}, {"nobody", 64 << 10}} {
		conn := dialRaw(t, g.Invoke)
		_, _ = io.WriteString(conn, head(c.token, "Transfer-Encoding: chunked"))
		go func() {
			chunk := "4000\r\n" + strings.Repeat(" ", 0x4000) + "\r\n"
			for sent := 0; sent < c.most+1<<20; sent += 0x4000 {
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
			}
		}()
		if r := readRaw(t, conn); r != nil && r.Code() != abi.CodePayloadTooLarge {
			t.Errorf("%s in chunks: %d %s", c.token, r.Status, r.Body)
		}
	}
	if n := g.Server.Started(); n != 0 {
		t.Errorf("%d guests were started", n)
	}
}

// PF-D18: heads and bodies that drip are cut, and nobody else waits for them.
func TestDataDrip(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	drip := func(url, first string) chan time.Duration {
		done := make(chan time.Duration, 1)
		c := dialRaw(t, url)
		go func() {
			began := time.Now()
			_, err := io.WriteString(c, first)
			for ; err == nil; _, err = io.WriteString(c, "a") {
				time.Sleep(200 * time.Millisecond)
			}
			done <- time.Since(began)
		}()
		return done
	}
	all := []chan time.Duration{
		drip(g.Invoke, "POST /v1/invoke/test:echo.do@1 HTTP/1.1\r\nX-A: "),
		drip(g.Invoke, strings.Replace(request(g, s, ""), "Content-Length: 0", "Content-Length: 100000", 1)),
		drip(g.Admin, "GET /v1/biomes HTTP/1.1\r\nX-A: "),
	}
	for range 5 {
		s.Invoke("test:echo.do@1", map[string]int{"n": 1}).Want(200)
	}
	for i, done := range all {
		select {
		case took := <-done:
			if took > 60*time.Second {
				t.Errorf("drip %d lasted %v", i, took)
			}
		case <-time.After(80 * time.Second):
			t.Errorf("drip %d goes on", i)
		}
	}
}
