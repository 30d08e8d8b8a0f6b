// Command benchmarks measures the hot path beside its peers, in one run, and writes the report.
//
//	go run . -prepare        build the guests (Go is needed; nothing is downloaded that go.mod does not name)
//	go run . [-quick]        measure everything and write results/
//	go run . -soak 10m       mixed load against a gateway, then look at what is left
//
// It measures only against servers it starts itself, on loopback, and stops by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/compile"
)

func main() {
	compile.RunIfChild()
	if len(os.Args) > 2 && os.Args[1] == "child" {
		exit(child(os.Args[2], os.Args[3:]))
	}
	var (
		prepare = flag.Bool("prepare", false, "build the guests and end")
		quick   = flag.Bool("quick", false, "a run of less than 50 s; rows that need longer say so")
		soak    = flag.Duration("soak", 0, "instead of measuring, load a gateway for this long")
		guests  = flag.String("guests", "guests/built", "folder of the built guests")
		out     = flag.String("out", "results", "folder of the report")
		only    = flag.String("only", "", "comma-separated sections to run: "+sectionNames())
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case *prepare:
		exit(buildGuests(ctx, *guests))
	case *soak > 0:
		exit(runSoak(ctx, *soak))
	}
	exit(run(ctx, *quick, *guests, *out, *only))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// quickBudget is when a quick run ends, whatever is still to do.
const quickBudget = 46 * time.Second

// errLate ends a section that sees that it has too little time left.
var errLate = errors.New("there is too little time left")

// bench is one run.
type bench struct {
	*report.Report
	quick bool
	dir   string // removed at the end
	built *built
}

// section is a part of the run.
type section struct {
	name  string
	share time.Duration // of a quick run's time: at most
	run   func(context.Context, *bench) error
}

var sections = []section{
	{"fresh", 22 * time.Second, measureFresh},
	{"http", 14 * time.Second, measureHTTP},
	{"guarantees", 5 * time.Second, measureGuarantees},
	{"metering", 5 * time.Second, measureMetering},
	{"cold", 10 * time.Second, measureCold},
	{"growth", 20 * time.Second, measureGrowth},
	{"noisy", 1 * time.Second, measureNoisy},
}

func sectionNames() string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
}

func run(ctx context.Context, quick bool, guests, out, only string) (err error) {
	b := &bench{Report: report.New(quick), quick: quick}
	if b.dir, err = os.MkdirTemp("", "ecotone-bench-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.built, err = loadGuests(guests); err != nil {
		return err
	}
	b.Peers = peers()
	bounded := ctx
	if quick {
		var cancel context.CancelFunc
		bounded, cancel = context.WithDeadline(ctx, b.Started.Add(quickBudget))
		defer cancel()
	}
	var failed error
	for _, s := range sections {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		begin := time.Now()
		fmt.Fprintf(os.Stderr, "%-12s", s.name)
		// A section that fails is reported and does not take the others with it.
		late, err := s.within(bounded, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case late:
			b.Add(report.Row{Group: s.name, Name: "what is not above of the section " + s.name, Status: report.FullOnly, Note: "The quick run was out of time: the machine is slow or busy."})
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name, err))
			fmt.Fprintf(os.Stderr, " FAILED: %v", err)
		}
		fmt.Fprintf(os.Stderr, " %5.1f s\n", time.Since(begin).Seconds())
	}
	fmt.Print(b.Text())
	if err := b.Write(out); err != nil {
		return err
	}
	fmt.Printf("\n%s run, %.0f s; written to %s\n", b.Mode, b.Seconds, filepath.Join(out, "latest.json"))
	return failed
}

// within runs a section in the time it has, and reports whether that was too little.
func (s section) within(ctx context.Context, b *bench) (late bool, err error) {
	if b.quick {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.share)
		defer cancel()
	}
	err = s.run(ctx, b) // out of time it fails at once, with the rows that need none
	return err != nil && (ctx.Err() != nil || errors.Is(err, errLate)), err
}

// peers are the versions that were linked.
func peers() map[string]string {
	out := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, d := range info.Deps {
		switch {
		case strings.HasPrefix(d.Path, "github.com/tetratelabs/wazero"), d.Path == "github.com/extism/go-sdk", d.Path == "github.com/valyala/fasthttp",
			strings.HasPrefix(d.Path, "github.com/bytecodealliance/wasmtime-go"):
			out[strings.TrimPrefix(d.Path, "github.com/")] = d.Version
		}
	}
	if peer.WasmtimeMissing != "" {
		out["wasmtime-go"] = "SKIPPED: " + peer.WasmtimeMissing
	}
	return out
}
