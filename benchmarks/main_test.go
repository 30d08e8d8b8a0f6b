package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/compile"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	os.Exit(m.Run())
}

// Every host that needs no toolchain gives the same answer to the small guest. Nothing is timed.
func TestSmallGuestEverywhere(t *testing.T) {
	ctx := t.Context()
	echo := []byte(`{"message":"hello, biome"}`)
	g := &peer.Guest{Name: "small", Export: "run", Ecotone: peer.Echo("echo", echoRef, 60<<10), Extism: peer.ExtismEcho(), Input: echo, Want: echo}
	ours, err := peer.NewHost(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	h, err := compileAll(ctx, ours, g)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	list, err := h.lineUp(ctx, g)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 6 {
		t.Fatalf("%d contenders", len(list))
	}
	for _, e := range list {
		defer e.c.Close()
		if err := peer.Check(ctx, e.c, g); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		other := *g
		other.Want = []byte(`{}`)
		if peer.Check(ctx, e.c, &other) == nil {
			t.Errorf("%s: a wrong answer is taken", e.name)
		}
	}
}

func TestKernelsAnswerAlike(t *testing.T) {
	by := map[string]*timed{}
	for _, v := range variants {
		m, closeAll, err := instantiate(t.Context(), peer.Kernels(), v, true)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		defer closeAll()
		for _, k := range kernels {
			if k.native {
				k.argument = 12
				by[k.export+v.name] = &timed{name: k.export, run: m.runs(t.Context(), k)}
			}
		}
	}
	clear(answers)
	defer clear(answers)
	if err := sameAnswers(t.Context(), by); err != nil {
		t.Error(err)
	}
}

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
	yes, no := load.Post(address, "/", "t", []byte("yes")), load.Post(address, "/", "t", []byte("no"), "X-A", "b")
	r, err := load.Run(t.Context(), load.Plan{Address: address, Connections: 3, For: time.Minute, Next: func(_, n int) load.Request {
		return []load.Request{yes, no, nil}[n]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Latency) != 6 || r.Status[200] != 3 || r.Status[403] != 3 || r.Bad() != 3 {
		t.Errorf("%d answers, %v, %d bad", len(r.Latency), r.Status, r.Bad())
	}
	r, err = load.Run(t.Context(), load.Plan{Address: address, Connections: 2, For: 200 * time.Millisecond, Rate: 100, Next: always(yes)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Latency) + r.Late; n != 20 {
		t.Errorf("%d requests at 100/s for 0.2 s", n)
	}
	if _, err := load.Run(t.Context(), load.Plan{Address: "192.0.2.1:80", Connections: 1, For: time.Second, Next: always(yes)}); err == nil {
		t.Error("it drives an address that is not loopback")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := load.Run(ctx, load.Plan{Address: address, Connections: 1, For: time.Hour, Next: always(yes)}); err == nil {
		t.Error("it runs on after it was cancelled")
	}
}

func TestReport(t *testing.T) {
	r := report.New(true)
	add := func(name string, ratio float64, target *report.Target, status report.Status) report.Status {
		r.Add(report.Row{Group: "g", Name: name, Value: 1500, Unit: "ns", Reference: "other", Ratio: ratio, Reads: "times", Target: target, Status: status, Note: "a note"})
		return r.Rows[len(r.Rows)-1].Status
	}
	least, most := &report.Target{Better: report.AtLeast, Bound: 2}, &report.Target{Better: report.AtMost, Bound: 2}
	for _, c := range []struct {
		ratio  float64
		target *report.Target
		status report.Status
		want   report.Status
	}{
		{2, least, "", report.Reached},
		{1.9, least, "", report.NotReached},
		{2, most, "", report.Reached},
		{2.1, most, "", report.NotReached},
		{0, most, report.FullOnly, report.FullOnly},
		{5, nil, "", ""},
	} {
		if got := add("row", c.ratio, c.target, c.status); got != c.want {
			t.Errorf("%v %v %q: %q", c.ratio, c.target, c.status, got)
		}
	}
	bars := report.Bars("a < b", []string{"g"}, map[string][]report.Bar{"g": {{Name: "x & y", Value: 10}, {Name: "z", Value: 1e6, Ours: true}}})
	lines := report.Lines("t", "x", "y", "ns", []report.Series{{Name: "s", Points: []report.Point{{X: 1, Y: 10}, {X: 10, Y: 20}}}})
	for _, svg := range []string{bars, lines} {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
	}
	r.Plot("p.svg", "a plot", bars)
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "latest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back report.Report
	if err := json.Unmarshal(raw, &back); err != nil || len(back.Rows) != len(r.Rows) {
		t.Errorf("%v, %d rows", err, len(back.Rows))
	}
	md, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(md), "![a plot](p.svg)") || !strings.Contains(string(md), "full only") {
		t.Errorf("%v in %s", err, md)
	}
}

func TestMedian(t *testing.T) {
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 || median(nil) != 0 {
		t.Error("medians are wrong")
	}
	a, b := &timed{ns: []float64{2, 40, 6}}, &timed{ns: []float64{1, 20, 2}}
	if a.over(b) != 2 {
		t.Errorf("over = %v", a.over(b))
	}
}
