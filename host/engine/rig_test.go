package engine_test

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/share"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

//go:embed testdata/guests.wasm
var guests []byte

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// metered is what becomes of a module before it is compiled; all its functions stay exported.
func metered(t testing.TB, module []byte) *meter.Result {
	t.Helper()
	limits := abi.DefaultLimits()
	limits[abi.LimitMemoryBytes] = abi.LimitMemoryBytes.Info().Hard
	structure, problems := wasm.Read(module, limits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := meter.Options{StackBytes: engine.StackBytes(), ExportGlobals: true, Limits: limits}
	for _, e := range structure.Exports {
		if e.Kind == wasm.KindFunc {
			o.Exports = append(o.Exports, e.Name)
		}
	}
	result, err := meter.Rewrite(module, structure, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// load meters a module and compiles it in this process, which only tests do, under the
// configuration that artifacts are made under.
func load(t testing.TB, module []byte) *engine.Image {
	t.Helper()
	return compiled(t, metered(t, module).Module)
}

func compiled(t testing.TB, module []byte) *engine.Image {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, compile.RuntimeConfig())
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	image, err := engine.NewImage(ctx, r, compiled, abi.FaceNative)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := image.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return image
}

// unmetered is what becomes of a module that was not metered.
func unmetered(t testing.TB, module []byte) error {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, compile.RuntimeConfig())
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	image, err := engine.NewImage(ctx, r, compiled, abi.FaceNative)
	if err == nil {
		_ = image.Close(ctx)
	}
	return err
}

// journal accepts every effect.
type journal struct{}

func (journal) Started(context.Context, *authority.Authority) error { return nil }

func (journal) Announce(context.Context, *authority.Authority, int, string, string) error { return nil }

func (journal) Closed(context.Context, *authority.Authority, int, abi.Code) error { return nil }

// fetcher is a Fetcher as a function.
type fetcher func(ctx context.Context) (boundary.Result, error)

func (f fetcher) Fetch(ctx context.Context, _ boundary.Scope, _ boundary.FetchRequest, _ []byte) (boundary.Result, error) {
	return f(ctx)
}

// invocation is what one test run is made from; the zero value is a valid one of "echo".
type invocation struct {
	export  string
	input   string
	spec    func(*authority.Spec)
	fetch   fetcher
	current func() *abi.Error
	share   *share.Org
}

func (i invocation) make() *boundary.Invocation {
	spec := authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: "acme", Space: "lab", Workspace: "w", Biome: "guests",
		Subject: "user:ada", Capability: "guests:test.run@1", Export: i.export,
		Reach: abi.ReachIntegration, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated,
		Limits: abi.DefaultLimits(),
	}
	if spec.Export == "" {
		spec.Export = "echo"
	}
	if i.spec != nil {
		i.spec(&spec)
	}
	if i.current == nil {
		i.current = func() *abi.Error { return nil }
	}
	services := boundary.Services{Journal: journal{}}
	if i.fetch != nil {
		services.HTTP = i.fetch
	}
	return boundary.New(boundary.Spec{
		Authority: authority.New(spec, i.current),
		Input:     []byte(i.input),
		Services:  services,
		Share:     i.share,
	})
}

func wall(ms int64) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Limits[abi.LimitWall] = ms }
}

// patience is how long a test waits for what must happen before it calls it a hang.
func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func describe(o boundary.Outcome) string {
	if o.Err != nil {
		return string(o.Err.Code)
	}
	return string(o.Output)
}
