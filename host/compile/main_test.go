package compile

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
)

func TestMain(m *testing.M) {
	RunIfChild()
	goleak.VerifyTestMain(m)
}

// modules is the store that rebuilds come from.
type modules struct {
	mu   sync.Mutex
	byID map[Digest][]byte
	err  error
	asks int
}

func (m *modules) add(module []byte) Digest {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = map[Digest][]byte{}
	}
	digest := DigestOf(module)
	m.byID[digest] = module
	return digest
}

func (m *modules) source(_ context.Context, digest Digest) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asks++
	if m.err != nil {
		return nil, m.err
	}
	module, ok := m.byID[digest]
	if !ok {
		return nil, abi.Errorf(abi.CodeNotFound, "no such module")
	}
	return module, nil
}

var testKey = []byte("a key of thirty-two bytes or more")

// start returns a compiler over a new directory, closed with the test.
func start(t testing.TB, change ...func(*Options)) (*Compiler, *modules, string) {
	t.Helper()
	store := &modules{}
	o := Options{Dir: t.TempDir(), Key: testKey, Limits: abi.DefaultLimits(), Source: store.source}
	for _, f := range change {
		f(&o)
	}
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Join(o.Dir, "tmp")); err != nil || len(left) > 0 {
			t.Errorf("left in tmp: %v %v", left, err)
		}
		if n := ParentCompiles(); n != 0 {
			t.Errorf("this process compiled %d times", n)
		}
	})
	return c, store, o.Dir
}

func limit(t testing.TB, name string, value int64) func(*Options) {
	return func(o *Options) {
		t.Helper()
		if err := o.Limits.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// answering is a module whose export f returns n, so that running tells whose code it is.
func answering(n byte) []byte {
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	b = append(b, section(1, []byte{1, 0x60, 0, 1, 0x7f})...)
	b = append(b, section(3, []byte{1, 0})...)
	b = append(b, section(7, []byte{1, 1, 'f', 0, 0})...)
	return append(b, section(10, []byte{1, 4, 0, 0x41, n & 0x3f, 0x0b})...)
}

// call loads an artifact and runs its f.
func call(t testing.TB, a *Artifact, module []byte) (uint64, error) {
	t.Helper()
	ctx := context.Background()
	rt, compiled, err := LoadModule(ctx, RuntimeConfig(), a, module)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	instance, err := rt.InstantiateModule(ctx, compiled, moduleConfig)
	if err != nil {
		return 0, err
	}
	results, err := instance.ExportedFunction("f").Call(ctx)
	if err != nil {
		return 0, err
	}
	return results[0], nil
}

func mustCompile(t testing.TB, c *Compiler, module []byte) *Artifact {
	t.Helper()
	a, err := c.Compile(t.Context(), DigestOf(module), module)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// eventually loads until the rebuild is done.
func eventually(t testing.TB, c *Compiler, digest Digest) *Artifact {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		a, err := c.Load(t.Context(), digest)
		if err == nil {
			return a
		}
		if code := abi.CodeOf(err); code != abi.CodeImageNotReady || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func wantCode(t testing.TB, err error, code abi.Code) {
	t.Helper()
	if abi.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
