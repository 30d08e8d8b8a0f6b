package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// S13: a Go guest whose manifest says freeze: seeded runs from an image for each organisation.
// What its runtime drew is the same in the invocations of one and in no other; without that
// word each invocation draws anew, and the report says why it has to.
func TestGoGuestFromAnImage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a WebAssembly module with the Go toolchain")
	}
	r := newRig(t, 0)
	warned := func(freeze abi.Freeze) (string, bool) {
		module := buildGo(t, "./testdata/greet", freeze, "greet", "seeds", "panics")
		report, err := r.host.Admit(patience(t), wasm.Original{Module: module})
		if err != nil {
			t.Fatal(err)
		}
		return r.keep(report, module), slices.ContainsFunc(report.Warnings, func(w admission.Warning) bool {
			return w.Topic == "fresh-instances" && strings.Contains(w.Message, "random_get")
		})
	}
	auto, said := warned(abi.FreezeAuto)
	if !said {
		t.Error("the report does not say why there is no image")
	}
	digest, said := warned(abi.FreezeSeeded)
	if said {
		t.Error("a seeded module is warned of")
	}

	seeds := func(org, digest string) []string {
		o := r.run(org, digest, "seeds", `{}`)
		var out []string
		if err := json.Unmarshal(o.Output, &out); err != nil {
			t.Fatal(err, o.Cause)
		}
		return out[:2] // at initialisation, in the call
	}
	for range 50 {
		for _, org := range []string{"acme", "other"} {
			if o := r.run(org, digest, "greet", `{"name":"Ada"}`); string(o.Output) != `"hello Ada"` {
				t.Fatalf("%q, %v", o.Output, o.Cause)
			}
		}
		if a, b := seeds("acme", digest), seeds("other", digest); a[0] == b[0] || a[1] == b[1] {
			t.Fatalf("two organisations, one seed: %v", a)
		}
	}
	if a, b := seeds("acme", auto), seeds("acme", auto); a[0] == b[0] || a[1] == b[1] {
		t.Errorf("not seeded, and twice %v", a)
	}
	if o := r.run("acme", digest, "panics", `{}`); o.Err == nil {
		t.Error("a panic is no error")
	}
	if o := r.run("acme", digest, "greet", `{"name":"Bob"}`); string(o.Output) != `"hello Bob"` {
		t.Errorf("after a panic: %q, %v", o.Output, o.Cause)
	}
	// Images are remade by time only, and this took less than a few of them.
	if s := r.pool.Stats(); s.Frozen < 2 || s.Frozen > 20 || s.Made > 30 {
		t.Errorf("%+v", s)
	}
}

// S13: what a Go guest's runtime drew of randomness, and the order in which it ranges over maps, differ between
// two organisations, and between an image and the one it is remade as, though the module is the same and
// its author accepts that an image's invocations share them.
func TestSeedsOfImages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a WebAssembly module with the Go toolchain")
	}
	module := buildGo(t, "./testdata/greet", abi.FreezeSeeded, "seeds", "order")
	for _, c := range []struct {
		name string
		life time.Duration
		orgs []string
	}{
		{"organisations", time.Hour, []string{"acme", "other", "third"}},
		{"remade", time.Nanosecond, []string{"acme", "acme", "acme"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := engine.NewPooled(engine.PoolOptions{Verify: true, SeedLife: c.life})
			t.Cleanup(pool.Close) // after the host, whose cleanup comes first
			r := newRigOf(t, 0, pool)
			digest := r.admit(module)
			seen := map[string]string{}
			for n, org := range c.orgs {
				for _, export := range []string{"seeds", "order"} {
					var drawn []string
					if o := r.run(org, digest, export, `{}`); json.Unmarshal(o.Output, &drawn) != nil {
						t.Fatal(o.Cause)
					}
					for i, what := range drawn[:2] {
						// 100 numbers in one order of many, 64 random bits: equal by chance never happens.
						here := fmt.Sprintf("%s %d of invocation %d of %s", export, i, n, org)
						if before, known := seen[what]; known {
							t.Errorf("%s is that of %s", here, before)
						}
						seen[what] = here
					}
				}
			}
			if s := pool.Stats(); s.Frozen < 3 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// BenchmarkGoJSON is the whole of a host invocation of a Go guest that reads and writes JSON.
func BenchmarkGoJSON(b *testing.B) {
	module := buildGo(b, "./testdata/greet", abi.FreezeSeeded, "greet")
	for name, pool := range map[string]func() (engine.Pool, func()){
		"fresh": func() (engine.Pool, func()) { return engine.Fresh{}, func() {} },
		"pooled": func() (engine.Pool, func()) {
			p := engine.NewPooled(engine.PoolOptions{})
			return p, p.Close
		},
	} {
		b.Run(name, func(b *testing.B) {
			p, done := pool()
			b.Cleanup(done) // after the host, whose cleanup comes first
			r := newRigOf(b, 0, p)
			digest := r.admit(module)
			if o := r.run("acme", digest, "greet", `{"name":"Ada"}`); o.Err != nil {
				b.Fatal(o.Cause)
			}
			b.ReportAllocs()
			for b.Loop() {
				if o := r.run("acme", digest, "greet", `{"name":"Ada"}`); o.Err != nil {
					b.Fatal(o.Cause)
				}
			}
		})
	}
}
