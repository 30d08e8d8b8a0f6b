package admission_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// load is prepare, with an image that is closed with the test.
func load(t *testing.T, module []byte) *engine.Image {
	t.Helper()
	image := prepare(t, module)
	t.Cleanup(func() { _ = image.Close(context.Background()) })
	return image
}

// prepare makes an admitted module ready to run, the way what comes after admission does. The caller
// closes the image.
func prepare(t *testing.T, module []byte) *engine.Image {
	t.Helper()
	ctx := context.Background()
	m, problems := wasm.Read(module, abi.DefaultLimits())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	module = wasm.BoundTables(module, m, abi.DefaultLimits())
	if m, problems = wasm.Read(module, abi.DefaultLimits()); len(problems) > 0 {
		t.Fatal(problems)
	}
	metered, err := meter.Rewrite(module, m, meter.Options{Exports: []string{"run"}, StackBytes: engine.StackBytes(), Limits: abi.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(ctx, compile.RuntimeConfig())
	compiled, err := r.CompileModule(ctx, metered.Module)
	if err != nil {
		t.Fatal(err)
	}
	image, err := engine.NewImage(ctx, r, compiled, abi.FaceNative)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// What is admitted ends as the table says when the engine and the boundary run it, each call
// as if it were the first.
func TestHostileRuns(t *testing.T) {
	for _, m := range hostile.At(hostile.Invoke) {
		t.Run(m.Name, func(t *testing.T) {
			image, e := load(t, m.Bytes()), engine.New(engine.Fresh{})
			for i, step := range m.Calls {
				spec := authority.Spec{
					Invocation: "01J0000000000000000000TEST", Org: "acme", Space: "lab", Workspace: "w", Biome: m.Biome(),
					Subject: "user:ada", Capability: m.Ref(), Export: "run",
					Reach: abi.ReachOwner, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated,
					Limits: abi.DefaultLimits(),
				}
				switch step.Code {
				case abi.CodeDeadline:
					spec.Limits[abi.LimitWall], spec.Limits[abi.LimitFuel] = 300, abi.OperatorMax
				default: // a machine may be busy
					spec.Limits[abi.LimitWall] = 60_000
				}
				input := step.Input
				if input == "" {
					input = "{}"
				}
				o := e.Run(context.Background(), image, boundary.New(boundary.Spec{
					Authority: authority.New(spec, func() *abi.Error { return nil }),
					Input:     []byte(input),
				}))
				if step.Code != "" && (o.Err == nil || o.Err.Code != step.Code) {
					t.Errorf("call %d: wanted %s, got %v and %q", i, step.Code, o.Err, o.Output)
				}
				if step.Code == "" && (o.Err != nil || string(o.Output) != step.Output) {
					t.Errorf("call %d: wanted %q, got %q and %v", i, step.Output, o.Output, o.Err)
				}
			}
		})
	}
}

// The rows of the probe stage are refused by a trial of their initialiser.
func TestHostileTrials(t *testing.T) {
	limits := abi.DefaultLimits()
	for _, m := range hostile.At(hostile.Probe) {
		e := engine.New(engine.Fresh{})
		if err := e.Trial(context.Background(), load(t, m.Bytes()), &limits, 300*time.Millisecond); err == nil || err.Code != m.Want {
			t.Errorf("%s: wanted %s, got %v", m.Name, m.Want, err)
		}
	}
}
