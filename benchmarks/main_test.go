package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/compile"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	if os.Getenv(actAsProgram) != "" || len(os.Args) > 2 && os.Args[1] == "child" {
		main()
	}
	os.Exit(m.Run())
}

// Every host that needs no toolchain gives the same answer to the small guest. Nothing is timed.
func TestSmallGuestEverywhere(t *testing.T) {
	ctx := t.Context()
	g := smallGuest()
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

func TestRatiosAreOfRounds(t *testing.T) {
	a, b := &timed{ns: []float64{2, 40, 6}}, &timed{ns: []float64{1, 20, 2}}
	if a.over(b) != 2 {
		t.Errorf("over = %v", a.over(b))
	}
}

// Each step of the guarantees answers what the bare echo does.
func TestStepsAnswerAlike(t *testing.T) {
	b := &bench{Report: report.New(true), quick: true, dir: t.TempDir(), built: &built{small: smallGuest()}}
	stages, closeAll, err := startStages(t.Context(), b)
	defer closeAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) < 8 {
		t.Fatalf("%d stages", len(stages))
	}
	for _, s := range stages {
		// Lengths and status are looked at by the driver; the bodies here.
		got, err := once(t.Context(), s.serving.Invoke, s.request)
		if err != nil || string(got) != string(b.built.small.Input) {
			t.Errorf("%s: %q, %v: %s", s.name, got, err, s.serving.errs.String())
		}
	}
}

// once sends a request and returns the body of its answer.
func once(ctx context.Context, address string, r load.Request) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(r); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// A run that measured nothing still names every row with a target, and sections without one add none.
func TestCompleteNamesEveryTarget(t *testing.T) {
	b := &bench{Report: report.New(false), built: &built{json: &peer.Guest{Name: "Go + JSON"}}}
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	b.complete(all)
	want := 0
	for _, rows := range b.expected() {
		want += len(rows)
	}
	if len(b.Rows) != want || want < 10 {
		t.Errorf("%d rows, want %d", len(b.Rows), want)
	}
}
