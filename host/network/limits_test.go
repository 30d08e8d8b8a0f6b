package network

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// hang is how long a test waits before it calls something hung.
const hang = 20 * time.Second

func small(spec *authority.Spec) { set(spec, abi.LimitHTTPBytes, 1000) }

// PF-D16: an answer over the limit is a typed error, and the rest of it is not read.
func TestResponseIsBounded(t *testing.T) {
	var sent atomic.Int64
	o := serve(t, "origin.test", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			w.Write(make([]byte, 1000))
		case "/declared":
			w.Header().Set("Content-Length", "1001")
			w.Write(make([]byte, 1001))
		case "/chunked":
			for range 11 {
				w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		case "/endless":
			for {
				n, err := w.Write(make([]byte, 64<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		case "/bomb":
			var b bytes.Buffer
			z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
			z.Write(make([]byte, 500_000))
			z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(b.Bytes())
		case "/headers":
			for i := range MaxResponseHeaders + 1 {
				w.Header().Set("X-"+strconv.Itoa(i), "v")
			}
		case "/headerbytes":
			w.Header().Set("X-Long", strings.Repeat("v", MaxResponseHeaderBytes+1))
		}
	})
	c, _ := local(t, "origin.test")
	for path, want := range map[string]abi.Code{
		"/exact": "", "/bomb": "", "/declared": abi.CodeResponseTooLarge, "/chunked": abi.CodeResponseTooLarge, "/endless": abi.CodeResponseTooLarge,
		"/headers": abi.CodeResponseTooLarge, "/headerbytes": abi.CodeResponseTooLarge,
	} {
		s := scope(small, o.endpoint(t))
		res, err := get(t, c, s, o.url(path))
		if abi.CodeOf(err) != want || len(res.Body) > 1000 {
			t.Errorf("%s: %d bytes, %v, want %s", path, len(res.Body), err, want)
		}
		if s.Flow.Label() != abi.Confidential {
			t.Errorf("%s: the label is %s", path, s.Flow.Label())
		}
		if path == "/bomb" && (metaOf(t, res).Headers["content-encoding"] != "gzip" || len(res.Body) < 100) {
			t.Errorf("a coded body was not passed on as it is: %d bytes, %s", len(res.Body), res.Meta)
		}
	}
	if n := sent.Load(); n > 16<<20 {
		t.Errorf("the origin could send %d bytes", n)
	}
	_, err := c.Fetch(t.Context(), scope(small, o.endpoint(t)), boundary.FetchRequest{Method: "POST", URL: o.url("/exact")}, make([]byte, 1001))
	if abi.CodeOf(err) != abi.CodeRequestTooLarge {
		t.Error(err)
	}
	if _, err = c.Fetch(t.Context(), scope(small, o.endpoint(t)), boundary.FetchRequest{Method: "POST", URL: o.url("/exact")}, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
}

// A request stops wherever it hangs: the origin that never answers, answers in drips, or
// never takes the body. The next request works.
func TestHangingOrigins(t *testing.T) {
	drip := func(head string) func(net.Conn) {
		return func(conn net.Conn) {
			io.WriteString(conn, head)
			for {
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	silent := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for what, o := range map[string]*origin{
		"silent":           raw(t, "origin.test", silent),
		"headers in drips": raw(t, "origin.test", drip("HTTP/1.1 200 OK\r\nX-A: ")),
		"body in drips":    raw(t, "origin.test", drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")),
		"chunk in drips":   raw(t, "origin.test", drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n")),
		"no end":           raw(t, "origin.test", func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nx"); silent(conn) }),
	} {
		c, _ := local(t, "origin.test")
		e := o.endpoint(t)
		short := func(spec *authority.Spec) { set(spec, abi.LimitHTTPWall, 150) }
		s := scope(short, e)
		if _, err := within(t, func() (boundary.Result, error) { return get(t, c, s, o.url("/")) }); abi.CodeOf(err) != abi.CodeUpstreamTimeout {
			t.Errorf("%s: %v", what, err)
		}
		if s.Flow.Label() != abi.Confidential {
			t.Errorf("%s: the label is %s", what, s.Flow.Label())
		}

		// PF-D7: the invocation's own end comes first and is called by its name.
		for _, tt := range []struct {
			cause error
			want  abi.Code
		}{
			{nil, abi.CodeCanceled},
			{abi.Errorf(abi.CodeGrantRevoked, "revoked"), abi.CodeGrantRevoked},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { cancel(tt.cause) })
			_, err := within(t, func() (boundary.Result, error) {
				return c.Fetch(ctx, scope(nil, e), boundary.FetchRequest{Method: "GET", URL: o.url("/")}, nil)
			})
			if abi.CodeOf(err) != tt.want {
				t.Errorf("%s, cancelled: %v, want %s", what, err, tt.want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := within(t, func() (boundary.Result, error) {
			return c.Fetch(ctx, scope(nil, e), boundary.FetchRequest{Method: "GET", URL: o.url("/")}, nil)
		})
		cancel()
		if abi.CodeOf(err) != abi.CodeDeadline {
			t.Errorf("%s, deadline: %v", what, err)
		}
	}
}

func within(t *testing.T, f func() (boundary.Result, error)) (boundary.Result, error) {
	t.Helper()
	type outcome struct {
		res boundary.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() { res, err := f(); done <- outcome{res, err} }()
	select {
	case o := <-done:
		return o.res, o.err
	case <-time.After(hang):
		t.Fatal("hung")
		return boundary.Result{}, nil
	}
}

// An address that takes no connection uses its part of the time, and the request ends.
func TestHangingDial(t *testing.T) {
	n := resolver("origin.test.", "93.184.216.34")
	n.table["origin.test."][0] = append(n.table["origin.test."][0], n.table["origin.test."][0][0].Next())
	c := client(t, Options{Resolver: n})
	var dials atomic.Int64
	c.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	o := &origin{host: "origin.test", port: 80}
	s := scope(func(spec *authority.Spec) { set(spec, abi.LimitHTTPWall, 200) }, o.endpoint(t))
	if _, err := within(t, func() (boundary.Result, error) { return get(t, c, s, "http://origin.test/") }); abi.CodeOf(err) != abi.CodeUpstreamTimeout {
		t.Error(err)
	}
	if dials.Load() != 2 {
		t.Errorf("%d dials: the first address took all the time", dials.Load())
	}
}

// Origins that break the protocol end in UPSTREAM_FAILED, and the label is raised all the same.
func TestBrokenOrigins(t *testing.T) {
	for what, answer := range map[string]string{
		"nothing":            "",
		"garbage":            "\x00\x01\x02 not http\r\n\r\n",
		"HTTP/0.9":           "<html>hello</html>",
		"no status":          "HTTP/1.1 \r\n\r\n",
		"a broken header":    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab",
		"a short body":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab",
		"a broken chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"an unknown coding":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
		"switched protocols": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nab",
		"TLS":                "\x15\x03\x01\x00\x02\x02\x16",
	} {
		o := raw(t, "origin.test", func(conn net.Conn) { io.WriteString(conn, answer) })
		c, _ := local(t, "origin.test")
		s := scope(nil, o.endpoint(t))
		res, err := within(t, func() (boundary.Result, error) { return get(t, c, s, o.url("/")) })
		if abi.CodeOf(err) != abi.CodeUpstreamFailed || res.Body != nil || s.Flow.Label() != abi.Confidential {
			t.Errorf("%s: %v, label %s", what, err, s.Flow.Label())
		}
		if e := abi.AsError(err); strings.Contains(e.Message+e.Hint, "127.0.0.1") || strings.Contains(e.Message+e.Hint, "http:") {
			t.Errorf("%s: the message tells too much: %s", what, e.Message)
		}
	}
	c, _ := local(t, "origin.test")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := &origin{host: "origin.test", port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	if _, err := get(t, c, scope(nil, closed.endpoint(t)), closed.url("/")); abi.CodeOf(err) != abi.CodeUpstreamFailed {
		t.Errorf("nobody listens: %v", err)
	}
	nowhere := &origin{host: "nowhere.test", port: 80}
	if _, err := get(t, c, scope(nil, nowhere.endpoint(t)), "http://nowhere.test/"); abi.CodeOf(err) != abi.CodeUpstreamFailed {
		t.Errorf("no such name: %v", err)
	}
}

// An interim response costs nothing, a flood of them is a header over its limit.
func TestInterimResponses(t *testing.T) {
	hint := "HTTP/1.1 103 Early Hints\r\nLink: <" + strings.Repeat("x", 1000) + ">\r\n\r\n"
	c, _ := local(t, "origin.test")
	few := raw(t, "origin.test", func(conn net.Conn) {
		io.WriteString(conn, strings.Repeat(hint, 3)+"HTTP/1.1 204 No Content\r\n\r\n")
	})
	if res, err := get(t, c, scope(nil, few.endpoint(t)), few.url("/")); err != nil || metaOf(t, res).Status != 204 {
		t.Errorf("%v", err)
	}
	flood := raw(t, "origin.test", func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, hint); err != nil {
				return
			}
		}
	})
	_, err := within(t, func() (boundary.Result, error) { return get(t, c, scope(nil, flood.endpoint(t)), flood.url("/")) })
	if abi.CodeOf(err) != abi.CodeResponseTooLarge {
		t.Errorf("%v", err)
	}
}

// A label the invocation may not see makes the endpoint look absent, also when the ceiling
// falls while the request runs (S5).
func TestAnswerAboveTheCeiling(t *testing.T) {
	var s boundary.Scope
	o := serve(t, "origin.test", func(w http.ResponseWriter, r *http.Request) {
		f := s.Flow.(*flow)
		f.mu.Lock()
		f.ceiling = abi.Internal
		f.mu.Unlock()
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "above")
	})
	c, _ := local(t, "origin.test")
	for _, path := range []string{"/", "/broken"} {
		s = scope(nil, o.endpoint(t))
		res, err := get(t, c, s, o.url(path))
		if abi.CodeOf(err) != abi.CodeEndpointRefused || res.Body != nil || res.Meta != nil {
			t.Errorf("%s: %+v, %v", path, res, err)
		}
	}
}

// An authority that falls while the name is resolved dials nothing.
func TestRevokedWhileResolving(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	var fallen atomic.Bool
	n := &revoking{names: resolver("origin.test.", "127.0.0.1"), fallen: &fallen}
	c := client(t, Options{AllowLoopback: true, Resolver: n})
	s := scope(nil, o.endpoint(t))
	s.Authority = authority.New(*s.Authority.Spec(), func() *abi.Error {
		if fallen.Load() {
			return abi.Errorf(abi.CodeGrantRevoked, "revoked")
		}
		return nil
	})
	if _, err := get(t, c, s, o.url("/")); abi.CodeOf(err) != abi.CodeGrantRevoked || o.hits.Load() != 0 {
		t.Errorf("%v, %d requests", err, o.hits.Load())
	}
}

type revoking struct {
	*names
	fallen *atomic.Bool
}

func (r *revoking) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	r.fallen.Store(true)
	return r.names.LookupNetIP(ctx, network, host)
}

func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		cause error
		want  abi.Code
	}{
		{context.DeadlineExceeded, abi.CodeDeadline},
		{context.Canceled, abi.CodeCanceled},
		{errors.New("other"), abi.CodeCanceled},
		{fmt.Errorf("wrapped: %w", abi.Errorf(abi.CodeDraining, "draining")), abi.CodeDraining},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		if err := ended(ctx); abi.CodeOf(err) != tt.want {
			t.Errorf("%v: %v", tt.cause, err)
		}
	}
}
