package server_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// The hot path, whole and in parts, each with as many callers as the benchmark over HTTP has:
//
//	go test -run '^$' -bench HotPath -cpuprofile cpu.out ./gateway/server
//
// ECOTONE_AUDIT_DURABILITY=process measures the audit's other mode. cpu-ns/op is the processor time of
// the whole process, the client's over a socket included; on a busy machine it says more than
// ns/op. What the client and fasthttp cost by themselves is the bare echo.

const (
	hotCallers = 32
	hotRef     = "t:small.echo@1"
)

var hotInput = []byte(`{"name":"Ada","count":3,"tags":["a","b"]}`)

// hotGateway is a gateway with everything on, an echo guest and the token of a session that may call it. It
// is not one of [servertest.Start]: those have every instance compared with its image, which
// operators do not.
func hotGateway(b *testing.B, input string) (s *server.Server, token string) {
	b.Setenv("ECOTONE_VERIFY", "")
	durability, err := audit.ParseDurability(cmp.Or(os.Getenv("ECOTONE_AUDIT_DURABILITY"), "power"))
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "data")
	s, err = server.Open(b.Context(), server.Options{
		Dir: dir, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0", Limits: abi.DefaultLimits(),
		SubjectRate: rate.MaxPerHour, ClientRate: rate.MaxPerHour, // counted as ever, and out of the way
		Durability: durability,
		Log:        slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, io.Discard) }()
	b.Cleanup(func() {
		if stop(); <-done != nil {
			b.Error("the gateway did not stop cleanly")
		}
	})
	d := wasmtest.Provide(hotRef, "echo", abi.ReachOwner)
	d.InputSchema = []byte(input)
	var biome struct{ Digest string }
	var session struct{ Token string }
	control(b, s, dir, "POST", "/v1/biomes", wasmtest.Echo(wasmtest.Manifest("small", d)), nil)
	control(b, s, dir, "GET", "/v1/biomes/small", nil, &biome)
	control(b, s, dir, "PUT", "/v1/installs/small", map[string]any{"digest": biome.Digest, "environments": []string{"environment:project"}}, nil)
	control(b, s, dir, "POST", "/v1/grants", map[string]any{"subject": "user:alice", "capability": hotRef, "environment": "environment:project"}, nil)
	control(b, s, dir, "POST", "/v1/sessions", map[string]any{"subject": "user:alice", "environment": "environment:project"}, &session)
	return s, session.Token
}

// control sends one request to the control plane as the operator.
func control(b *testing.B, s *server.Server, dir, method, path string, body, out any) {
	operator, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		b.Fatal(err)
	}
	raw, isModule := body.([]byte)
	if !isModule && body != nil {
		raw = wasmtest.MustJSON(body)
	}
	_, admin, _ := s.Addresses()
	req, err := http.NewRequestWithContext(b.Context(), method, "http://"+admin+path, bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(operator)))
	req.Header.Set("Content-Type", map[bool]string{true: "application/wasm", false: "application/json"}[isModule])
	if method == "PUT" {
		req.Header.Set("If-None-Match", "*")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		b.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			b.Fatal(err)
		}
	}
}

const describedInput = `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"count":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}}}`

func BenchmarkHotPathPipeline(b *testing.B) {
	for _, c := range []struct{ name, schema string }{{"any", `{}`}, {"described", describedInput}} {
		b.Run(c.name, func(b *testing.B) {
			s, token := hotGateway(b, c.schema)
			p := s.Pipeline()
			measure(b, func(int) func() error {
				return func() error {
					a := p.Invoke(context.Background(), invoke.Request{
						Face: "http", Authorization: "Bearer " + token, Ref: hotRef, Input: hotInput, Method: "POST", Route: "/v1/invoke/{}",
					})
					if a.Problem != nil {
						return fmt.Errorf("%+v", a.Problem)
					}
					return nil
				}
			})
		})
	}
}

func BenchmarkHotPathSocket(b *testing.B) {
	s, token := hotGateway(b, `{}`)
	address, _, _ := s.Addresses()
	measure(b, func(int) func() error { return caller(b, address, token) })
}

func BenchmarkHotPathBareEcho(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(c *fasthttp.RequestCtx) { c.SetBody(c.PostBody()) }}
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(ln) })
	b.Cleanup(func() { _ = srv.Shutdown(); done.Wait() })
	token := "eco_s_" + strings.Repeat("A", 69)
	measure(b, func(int) func() error { return caller(b, ln.Addr().String(), token) })
}

// measure runs b.N calls by hotCallers callers.
func measure(b *testing.B, make func(id int) func() error) {
	calls := [hotCallers]func() error{}
	for i := range calls {
		calls[i] = make(i)
	}
	b.ReportAllocs()
	var next atomic.Int64
	var callers sync.WaitGroup
	b.ResetTimer()
	before := processorTime(b)
	for _, call := range calls {
		callers.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// caller is a keep-alive connection that sends one request after the other.
func caller(b *testing.B, address, token string) func() error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	request := fmt.Appendf(nil, "POST /v1/invoke/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		hotRef, address, token, len(hotInput), hotInput)
	in := bufio.NewReader(conn)
	return func() error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		return readAnswer(in)
	}
}

var contentLength = []byte("Content-Length: ")

// readAnswer takes one answer of 200 off a connection.
func readAnswer(in *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			_, err := in.Discard(length)
			return err
		case first && !bytes.HasSuffix(line, []byte(" 200 OK")):
			return fmt.Errorf("%s", line)
		case bytes.HasPrefix(line, contentLength):
			if length, err = strconv.Atoi(string(line[len(contentLength):])); err != nil {
				return err
			}
		}
	}
}

// processorTime is what the process has used, user and system, to the hundredth of a second.
func processorTime(b *testing.B) time.Duration {
	raw, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		b.Skip("there is no /proc here")
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
