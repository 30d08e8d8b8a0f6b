package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// When a run ends, whatever is still to do.
const quickBudget = 44 * time.Second

// fullBudget is that of a full run: growth to a million grants takes about eight minutes of it.
var fullBudget = 25 * time.Minute

// bench is one run.
type bench struct {
	*report.Report
	quick bool
	dir   string // removed at the end
	built *built
}

// pick chooses by the kind of run.
func pick[T any](b *bench, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// run measures the sections, prints the rows and writes the report.
func run(ctx context.Context, sections []section, quick bool, guests, out string) (err error) {
	b := &bench{Report: report.New(quick), quick: quick}
	if b.dir, err = os.MkdirTemp("", "ecotone-bench-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.built, err = loadGuests(guests); err != nil {
		return err
	}
	b.Peers = peers()
	w := newWatch()
	failed := b.measure(ctx, sections, w)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	b.complete(sections)
	b.Noise, b.Seconds = w.noise(), time.Since(b.Started).Seconds()
	fmt.Print(b.Text())
	if err := b.Write(out); err != nil {
		return err
	}
	fmt.Printf("\n%s run, %.0f s; written to %s\n", b.Mode, b.Seconds, filepath.Join(out, "latest.json"))
	return failed
}

// measure runs the sections one after the other. One that fails is reported and does not take
// the others with it.
func (b *bench) measure(ctx context.Context, sections []section, w *watch) (failed error) {
	bounded, cancel := context.WithDeadline(ctx, b.Started.Add(pick(b, quickBudget, fullBudget)))
	defer cancel()
	for i, s := range sections {
		begin := time.Now()
		fmt.Fprintf(os.Stderr, "[%d/%d] %-10s", i+1, len(sections), s.name)
		late, err := s.within(bounded, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case late:
			fmt.Fprintf(os.Stderr, " out of time: %v,", err)
			b.Add(report.Unmeasured("Left out", "what is not above of the section "+s.name, report.FullOnly, "The run was out of time: the machine is slow or busy."))
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name, err))
			fmt.Fprintf(os.Stderr, " FAILED: %v,", err)
		}
		fmt.Fprintf(os.Stderr, " %.1f s\n", time.Since(begin).Seconds())
		w.probe()
	}
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
		case d.Path == "github.com/tetratelabs/wazero", d.Path == "github.com/extism/go-sdk", d.Path == "github.com/extism/go-pdk", d.Path == "github.com/valyala/fasthttp",
			strings.HasPrefix(d.Path, "github.com/bytecodealliance/wasmtime-go"):
			out[strings.TrimPrefix(d.Path, "github.com/")] = d.Version
		}
	}
	if peer.WasmtimeMissing != "" {
		out["wasmtime-go"] = "SKIPPED: " + peer.WasmtimeMissing
	}
	return out
}
