package network

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/vault"
)

func secretClient(t *testing.T, hosts ...string) *Client {
	t.Helper()
	var pairs []string
	for _, h := range hosts {
		pairs = append(pairs, h+".", "127.0.0.1")
	}
	return client(t, Options{AllowLoopback: true, Resolver: resolver(pairs...), Secrets: secrets(t)})
}

// leaks finds the secret in anything a guest, a caller, a receipt or a log could get.
func leaks(res boundary.Result, err error) bool {
	text := strings.ToLower(fmt.Sprintf("%s %s %+v %#v %v", res.Body, res.Meta, res, err, err))
	for _, form := range []string{sentinel, hex.EncodeToString([]byte(sentinel)), base64.StdEncoding.EncodeToString([]byte(sentinel))[:30]} {
		if strings.Contains(text, strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// PF-F14, H2: the origin receives the secret, and nothing that comes back has it. PF-F9: a
// request that does not name it, and an origin that is not its own, never see the header.
func TestSecretGoesOutAndStaysOut(t *testing.T) {
	var seen []string
	handler := func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		io.WriteString(w, "fine")
	}
	o, other := serve(t, "origin.test", handler), serve(t, "other.test", handler)
	c := secretClient(t, "origin.test", "other.test")
	elsewhere := compile(t, "elsewhere", egress.Rule{Scheme: "http", Host: "other.test", Port: other.port, Methods: []string{"GET"}, Path: "/**"}, true)
	s := scope(withSecret, o.endpoint(t), elsewhere)
	for _, tt := range []struct {
		url, secret string
		want        string
		code        abi.Code
	}{
		{o.url("/"), "crm", "Bearer " + sentinel, ""},
		{o.url("/"), "", "", ""},
		{other.url("/"), "", "", ""},
		{other.url("/"), "crm", "", abi.CodeSecretDenied},
		{o.url("/"), "crm", "Bearer " + sentinel, ""},
	} {
		seen = nil
		res, err := c.Fetch(t.Context(), s, boundary.FetchRequest{Method: "GET", URL: tt.url, Secret: tt.secret}, nil)
		if abi.CodeOf(err) != tt.code || leaks(res, err) {
			t.Errorf("%s with %q: %v", tt.url, tt.secret, err)
		}
		if got := strings.Join(seen, ","); got != tt.want {
			t.Errorf("%s with %q: the origin saw %q", tt.url, tt.secret, got)
		}
	}
}

// PF-F2: the refusal is one and the same, and the same as without any vault.
func TestSecretDenied(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	var answers []string
	for _, tt := range []struct {
		c    *Client
		edit func(*authority.Spec)
		name string
	}{
		{secretClient(t, "origin.test"), nil, "crm"},
		{secretClient(t, "origin.test"), withSecret, "absent"},
		{secretClient(t, "origin.test"), func(s *authority.Spec) { s.Secrets = []string{"crm"}; s.Org = "other" }, "crm"},
		{client(t, Options{AllowLoopback: true, Resolver: resolver("origin.test.", "127.0.0.1")}), withSecret, "crm"},
	} {
		_, err := tt.c.Fetch(t.Context(), scope(tt.edit, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: o.url("/"), Secret: tt.name}, nil)
		e := abi.AsError(err)
		answers = append(answers, string(e.Code)+e.Message+e.Hint+e.Pointer)
	}
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, string(abi.CodeSecretDenied)) {
			t.Errorf("%q", answers)
		}
	}
	if o.hits.Load() != 0 {
		t.Error("something left")
	}
}

// S15: an echo anywhere in the response discards all of it; so does an answer in which an
// echo could not be found.
func TestEchoes(t *testing.T) {
	say := func(status, header, body string) func(net.Conn) {
		return func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
		}
	}
	const sec = sentinel
	quoted, _ := json.Marshal(map[string]string{"auth": "Bearer " + sec})
	half := len(sec) / 2
	var zipped strings.Builder
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, sec)
	z.Close()
	for what, tt := range map[string]struct {
		speak func(net.Conn)
		want  abi.Code
	}{
		"body":             {say("200 OK", "", "you sent "+sec), abi.CodeSecretEchoed},
		"body, error":      {say("401 Unauthorized", "", "bad token "+sec), abi.CodeSecretEchoed},
		"json":             {say("200 OK", "", string(quoted)), abi.CodeSecretEchoed},
		"base64, offset 1": {say("200 OK", "", base64.StdEncoding.EncodeToString([]byte("x"+sec))), abi.CodeSecretEchoed},
		"base64, offset 2": {say("200 OK", "", base64.URLEncoding.EncodeToString([]byte("xy"+sec))), abi.CodeSecretEchoed},
		"basic":            {say("200 OK", "", base64.StdEncoding.EncodeToString([]byte("user:"+sec))), abi.CodeSecretEchoed},
		"hex":              {say("200 OK", "", hex.EncodeToString([]byte(sec))), abi.CodeSecretEchoed},
		"percent":          {say("200 OK", "", url.QueryEscape(sec)), abi.CodeSecretEchoed},
		"utf-16":           {say("200 OK", "", strings.Join(strings.Split(sec, ""), "\x00")), abi.CodeSecretEchoed},
		"header":           {say("200 OK", "X-Echo: "+sec+"\r\n", ""), abi.CodeSecretEchoed},
		"header name":      {say("200 OK", "X-"+sec+": 1\r\n", ""), abi.CodeSecretEchoed},
		"cookie":           {say("200 OK", "Set-Cookie: t="+sec+"\r\n", ""), abi.CodeSecretEchoed},
		"location":         {say("302 Found", "Location: http://evil.test/?t="+url.QueryEscape(sec)+"\r\n", ""), abi.CodeSecretEchoed},
		"status line":      {say("200 "+sec, "", ""), abi.CodeSecretEchoed},
		"chunks": {func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, sec[:half], len(sec)-half, sec[half:])
		}, abi.CodeSecretEchoed},
		"trailer": {func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: %s\r\n\r\n", sec)
		}, abi.CodeSecretEchoed},
		"gzip":            {say("200 OK", "Content-Encoding: gzip\r\n", zipped.String()), abi.CodeUpstreamFailed},
		"a part":          {say("206 Partial Content", "Content-Range: bytes 0-3/25\r\n", sec[:4]), abi.CodeUpstreamFailed},
		"a part, as 200":  {say("200 OK", "Content-Range: bytes 0-3/25\r\n", sec[:4]), abi.CodeUpstreamFailed},
		"a broken answer": {func(conn net.Conn) { io.WriteString(conn, sec+" is what you sent\r\n\r\n") }, abi.CodeUpstreamFailed},
		"a broken header": {func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+sec+"\r\n\r\n") }, abi.CodeUpstreamFailed},
		"no echo":         {say("200 OK", "Content-Encoding: identity\r\n", sec[:half]+" "+strings.ToUpper(sec[half:])+"?"), abi.CodeSecretEchoed},
		"benign":          {say("200 OK", "", sec[:len(sec)-1]), ""},
	} {
		o := raw(t, "origin.test", tt.speak)
		s := scope(withSecret, o.endpoint(t))
		res, err := secretClient(t, "origin.test").Fetch(t.Context(), s, boundary.FetchRequest{Method: "GET", URL: o.url("/"), Secret: "crm"}, nil)
		if abi.CodeOf(err) != tt.want || leaks(res, err) {
			t.Errorf("%s: %v, want %s", what, err, tt.want)
		}
		if tt.want != "" && (res.Body != nil || res.Meta != nil) {
			t.Errorf("%s: something was delivered", what)
		}
		if s.Flow.Label() != abi.Confidential {
			t.Errorf("%s: the label is %s", what, s.Flow.Label())
		}
	}
}

// PF-F5: net/http writes to the process's log what an origin sends behind its response.
func TestEchoBehindTheResponse(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	closed := make(chan struct{}, 1)
	o := raw(t, "origin.test", func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 "+sentinel+"\r\n\r\n")
		io.Copy(io.Discard, conn)
		closed <- struct{}{}
	})
	res, err := secretClient(t, "origin.test").Fetch(t.Context(), scope(withSecret, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: o.url("/"), Secret: "crm"}, nil)
	if err != nil || string(res.Body) != "ok" {
		t.Errorf("%s, %v", res.Body, err)
	}
	<-closed
	if strings.Contains(out.String(), sentinel) {
		t.Errorf("logged: %s", out.String())
	}
}

// S15: an origin that echoes answers a few guesses, then the secret is denied.
func TestEchoesAreCounted(t *testing.T) {
	o := serve(t, "origin.test", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) })
	c := secretClient(t, "origin.test")
	for i := range vault.MaxEchoes + 5 {
		_, err := c.Fetch(t.Context(), scope(withSecret, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: o.url("/"), Secret: "crm"}, nil)
		want := abi.CodeSecretEchoed
		if i >= vault.MaxEchoes {
			want = abi.CodeSecretDenied
		}
		if abi.CodeOf(err) != want {
			t.Errorf("%d: %v, want %s", i, err, want)
		}
	}
	if o.hits.Load() != vault.MaxEchoes {
		t.Errorf("the origin was asked %d times", o.hits.Load())
	}
}

// A secret goes out in clear text only where it cannot leave the machine, whatever the name
// resolves to; over TLS it goes to the name that was verified.
func TestSecretInClearText(t *testing.T) {
	n := resolver("origin.test.", "93.184.216.34")
	c := client(t, Options{AllowLoopback: true, Resolver: n, Secrets: secrets(t)})
	var dialled []string
	c.dial = record(&dialled)
	o := &origin{host: "origin.test", port: 80}
	req := boundary.FetchRequest{Method: "GET", URL: "http://origin.test/", Secret: "crm"}
	if _, err := c.Fetch(t.Context(), scope(withSecret, o.endpoint(t)), req, nil); abi.CodeOf(err) != abi.CodeAddressRefused || len(dialled) != 0 {
		t.Errorf("%v, dialled %v", err, dialled)
	}
	req.Secret = ""
	if _, err := c.Fetch(t.Context(), scope(withSecret, o.endpoint(t)), req, nil); abi.CodeOf(err) != abi.CodeUpstreamFailed || len(dialled) != 1 {
		t.Errorf("without a secret: %v, dialled %v", err, dialled)
	}
}

func TestSecretOverTLS(t *testing.T) {
	var got string
	ts := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	t.Cleanup(ts.Close)
	c := client(t, Options{AllowLoopback: true, Resolver: resolver("example.com.", "127.0.0.1"), Secrets: secrets(t), RootCAs: ts.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	port := portOf(t, ts.URL)
	e := compile(t, "origin", egress.Rule{Scheme: "https", Host: "example.com", Port: port, Methods: []string{"GET"}, Path: "/**"}, true)
	res, err := c.Fetch(t.Context(), scope(withSecret, e), boundary.FetchRequest{Method: "GET", URL: fmt.Sprintf("https://example.com:%d/", port), Secret: "crm"}, nil)
	if err != nil || got != "Bearer "+sentinel || leaks(res, err) {
		t.Errorf("%q, %v", got, err)
	}
}

// The guest cannot set the header that the secret goes into, in any spelling.
func TestSecretHeaderIsTheHosts(t *testing.T) {
	v := vault.New(keys(t), store{"key": {
		Version: 1,
		Uses:    []vault.Use{{Kind: vault.KindHeader, Header: "X-Api-Key", Endpoint: "origin"}},
		Sealed:  keys(t).Seal("acme", "key", 1, vault.NewValue([]byte(sentinel))),
	}})
	o := serve(t, "origin.test", func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("X-Api-Key"); len(got) != 1 || got[0] != sentinel {
			t.Errorf("the origin saw %q", got)
		}
	})
	c := client(t, Options{AllowLoopback: true, Resolver: resolver("origin.test.", "127.0.0.1"), Secrets: v})
	s := scope(func(spec *authority.Spec) { spec.Secrets = []string{"key"} }, o.endpoint(t))
	for header, want := range map[string]abi.Code{"x-api-key": abi.CodeHeaderRefused, "X_API_KEY": abi.CodeHeaderRefused, "X-Other": ""} {
		_, err := c.Fetch(t.Context(), s, boundary.FetchRequest{Method: "GET", URL: o.url("/"), Secret: "key", Headers: map[string]string{header: "guess"}}, nil)
		if abi.CodeOf(err) != want {
			t.Errorf("%s: %v", header, err)
		}
	}
}
