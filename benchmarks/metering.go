package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

const groupMetering = "Metering on kernels"

// slice is the fuel handed out at a time here: a few hundred microseconds of work.
const slice = 1 << 20

// kernel is a function (i32) -> i32 and what it is called with: about a millisecond of work.
type kernel struct {
	export   string
	argument uint64
	native   bool // assembled; otherwise compiled from Go
}

var kernels = []kernel{
	{"loop", 1_000_000, true},
	{"recursion", 22, true},
	{"sha256", 40, false},
	{"sort", 8_000, false},
	{"json", 60, false},
}

// variant is one way to run the kernels.
type variant struct {
	name    string
	checks  bool // the engine's context checks
	metered bool
}

var variants = []variant{{name: "plain"}, {name: "context checks", checks: true}, {name: "metered", metered: true}}

func measureMetering(ctx context.Context, b *bench) error {
	by := map[string]*timed{}
	var all []*timed
	notBuilt := ""
	for _, native := range []bool{true, false} {
		if b.quick && !native {
			continue // a Go guest is compiled three times
		}
		module := b.built.kernels
		if native {
			module = peer.Kernels()
		}
		for _, v := range variants {
			m, closeAll, err := instantiate(ctx, module, v, native)
			if err != nil {
				if !v.metered {
					return fmt.Errorf("%s: %w", v.name, err)
				}
				notBuilt = err.Error()
				continue
			}
			defer closeAll()
			for _, k := range kernels {
				if k.native == native {
					t := &timed{name: k.export + ", " + v.name, run: m.runs(ctx, k)}
					by[t.name], all = t, append(all, t)
				}
			}
		}
	}
	if err := sameAnswers(ctx, by); err != nil {
		return err
	}
	if err := alternate(ctx, pick(b, 5, 15), pick(b, 15*time.Millisecond, 150*time.Millisecond), all...); err != nil {
		return err
	}
	worst, product, n := 0.0, 1.0, 0
	for _, k := range kernels {
		plain := by[k.export+", plain"]
		for _, v := range variants {
			row := report.Row{Group: groupMetering, Name: "kernel " + k.export + ", " + v.name, Unit: "ns"}
			t := by[k.export+", "+v.name]
			switch {
			case t == nil && v.metered && notBuilt != "":
				row.Status, row.Note = report.NotBuilt, notBuilt
			case t == nil:
				row.Status = report.FullOnly
			default:
				row.Value = t.median()
				if v.name != "plain" {
					row.Reference, row.Ratio, row.Reads = "plain", t.over(plain), "times"
				}
				if v.metered {
					worst, product, n = max(worst, row.Ratio), product*row.Ratio, n+1
				}
			}
			b.Add(row)
		}
	}
	mean := report.Row{Group: groupMetering, Name: "metering, geometric mean over the kernels", Target: &report.Target{Better: report.AtMost, Bound: 1.2}}
	most := report.Row{Group: groupMetering, Name: "metering, the worst kernel", Target: &report.Target{Better: report.AtMost, Bound: 1.5}}
	for _, row := range []*report.Row{&mean, &most} {
		switch {
		case notBuilt != "":
			row.Status, row.Note = report.NotBuilt, notBuilt
		case n < len(kernels):
			row.Status = report.FullOnly
		default:
			row.Reference, row.Reads = "plain", "times"
			row.Ratio = math.Pow(product, 1/float64(n))
			if row == &most {
				row.Ratio = worst
			}
			row.Value = row.Ratio
		}
		b.Add(*row)
	}
	return nil
}

// sameAnswers is not timed: every variant of a kernel answers the same.
func sameAnswers(ctx context.Context, by map[string]*timed) error {
	for _, t := range by {
		if err := t.run(1); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return ctx.Err()
}

type instance struct {
	module api.Module
	meter  *meter.Result
}

// answers are what the plain variant of each kernel returned first; others must agree.
var answers = map[string]uint64{}

func (i *instance) runs(ctx context.Context, k kernel) func(int) error {
	f := i.module.ExportedFunction(k.export)
	return func(n int) error {
		for range n {
			if i.meter != nil {
				i.global(meter.ExportDepth).Set(uint64(i.meter.StartDepth))
			}
			out, err := f.Call(ctx, k.argument)
			if err != nil {
				return err
			}
			if want, known := answers[k.export]; !known {
				answers[k.export] = out[0]
			} else if out[0] != want {
				return fmt.Errorf("it answers %d, not %d", out[0], want)
			}
		}
		return nil
	}
}

func (i *instance) global(name string) api.MutableGlobal {
	return i.module.ExportedGlobal(name).(api.MutableGlobal)
}

func instantiate(ctx context.Context, module []byte, v variant, native bool) (_ *instance, closeAll func(), err error) {
	i := &instance{}
	if v.metered {
		if i.meter, err = rewrite(module); err != nil {
			return nil, nil, err
		}
		module = i.meter.Module
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(v.checks))
	closeAll = func() { _ = r.Close(context.Background()) }
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	if !native {
		if _, err = wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	if v.metered {
		host := r.NewHostModuleBuilder(meter.ImportModule)
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
			m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal).Set(slice)
		}), nil, nil).Export(meter.ImportRefuel)
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) {
			panic("the kernel's stack is too deep")
		}), nil, nil).Export(meter.ImportOverflow)
		if _, err = host.Instantiate(ctx); err != nil {
			return nil, nil, err
		}
	}
	i.module, err = r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return nil, nil, err
	}
	return i, closeAll, nil
}

func rewrite(module []byte) (*meter.Result, error) {
	limits := admission.UploadLimits(abi.DefaultLimits())
	parsed, problems := wasm.Read(module, limits)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the kernels are not read: %v", problems[0])
	}
	exports := make([]string, len(kernels))
	for i, k := range kernels {
		exports[i] = k.export
	}
	return meter.Rewrite(module, parsed, meter.Options{Exports: exports, StackBytes: 16 << 20, Limits: limits})
}
