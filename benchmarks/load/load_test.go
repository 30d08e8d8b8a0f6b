package load

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func always(r Request) func(int, int) Request { return func(int, int) Request { return r } }

// The driver counts what it is answered, keeps to its rate and time, and drives loopback only.
func TestDriver(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) {
		if bytes.Equal(c.PostBody(), []byte("no")) {
			c.SetStatusCode(403)
		}
		c.SetBody(c.PostBody())
	}}
	go func() { _ = s.Serve(ln) }()
	defer func() { _ = s.Shutdown() }()
	address := ln.Addr().String()
	yes, no := Post(address, "/", "t", []byte("yes")), Post(address, "/", "t", []byte("no"), "X-A", "b")
	r, err := Run(t.Context(), Plan{Address: address, Connections: 3, For: time.Minute, Next: func(_, n int) Request {
		return []Request{yes, no, nil}[n]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Latency) != 6 || r.Status[200] != 3 || r.Status[403] != 3 || r.Bad() != 3 {
		t.Errorf("%d answers, %v, %d bad", len(r.Latency), r.Status, r.Bad())
	}
	r, err = Run(t.Context(), Plan{Address: address, Connections: 2, For: 200 * time.Millisecond, Rate: 100, Next: always(yes)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Latency) + r.Late; n != 20 {
		t.Errorf("%d requests at 100/s for 0.2 s", n)
	}
	if _, err := Run(t.Context(), Plan{Address: "192.0.2.1:80", Connections: 1, For: time.Second, Next: always(yes)}); err == nil {
		t.Error("it drives an address that is not loopback")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Plan{Address: address, Connections: 1, For: time.Hour, Next: always(yes)}); err == nil {
		t.Error("it runs on after it was cancelled")
	}
}
