package compile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

var moduleConfig = wazero.NewModuleConfig().WithName("")

func TestCompileLoadRun(t *testing.T) {
	c, _, dir := start(t)
	module := answering(7)
	fresh := mustCompile(t, c, module)
	kept, err := c.Load(t.Context(), fresh.Digest())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Artifact{fresh, kept} {
		if got, err := call(t, a, module); got != 7 || err != nil {
			t.Errorf("f: %d, %v", got, err)
		}
	}
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{
			"cache": os.ModeDir | 0o700, "tmp": os.ModeDir | 0o700, "cache/" + fresh.Digest().String(): 0o600,
		} {
			if st, err := os.Stat(filepath.Join(dir, path)); err != nil || st.Mode() != mode {
				t.Errorf("%s: %v %v", path, st.Mode(), err)
			}
		}
	}
	if err := errors.Join(c.Forget(fresh.Digest()), c.Forget(fresh.Digest())); err != nil {
		t.Error(err)
	}
	if _, err := c.Load(t.Context(), fresh.Digest()); abi.CodeOf(err) != abi.CodeImageNotReady {
		t.Errorf("after Forget: %v", err)
	}
}

// An upload costs a child whether or not the bytes are known (S14), and the code is the same.
func TestCompileNeverAnswersFromTheCache(t *testing.T) {
	c, _, _ := start(t)
	one, two := mustCompile(t, c, answering(1)), mustCompile(t, c, answering(1))
	if got := c.Stats().Children; got != 2 {
		t.Errorf("%d children", got)
	}
	if diff := cmp.Diff(one.code, two.code); diff != "" {
		t.Error("compiling is not deterministic")
	}
}

// The fingerprint is a property of binary and machine, not of a start.
func TestFingerprintIsStable(t *testing.T) {
	one, _, _ := start(t)
	two, _, _ := start(t)
	here, err := fingerprint(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if one.fingerprint != two.fingerprint || one.fingerprint != here {
		t.Errorf("%s, %s, %s", one.fingerprint, two.fingerprint, here)
	}
}

// PF-I3: fifty callers, one child, one result.
func TestParallelCallersShareOneChild(t *testing.T) {
	c, _, _ := start(t, func(o *Options) { o.Workers = 4 })
	module := moduleOf(bombIfElse(4000)) // long enough for all to arrive
	var callers sync.WaitGroup
	artifacts := make([]*Artifact, 50)
	for i := range artifacts {
		callers.Go(func() {
			var err error
			if artifacts[i], err = c.Compile(t.Context(), DigestOf(module), module); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	for _, a := range artifacts {
		if a != artifacts[0] {
			t.Fatal("callers got different artifacts")
		}
	}
	if got := c.Stats().Children; got != 1 {
		t.Errorf("%d children", got)
	}
}

// S2: what was rewritten is refused when the original does not validate, however sound the rest.
func TestOriginalsAreValidated(t *testing.T) {
	c, _, _ := start(t)
	bad := w.New()
	bad.Capability("run", w.I64Const(1)) // an i64 where an i32 belongs
	module := answering(1)
	if _, err := c.CompileRewritten(t.Context(), DigestOf(module), bad.Memory(1).ExportMemory().Bytes(), module); abi.CodeOf(err) != abi.CodeModuleInvalid {
		t.Error(err)
	}
	if _, err := c.CompileRewritten(t.Context(), DigestOf(module), answering(2), module); err != nil {
		t.Error(err)
	}
}

func TestOneDigestForTwoModules(t *testing.T) {
	c, _, _ := start(t)
	slow := moduleOf(bombIfElse(4000))
	digest := DigestOf(slow)
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := c.Compile(t.Context(), digest, slow); err != nil {
			t.Error(err)
		}
	})
	busy(t, c)
	_, err := c.Compile(t.Context(), digest, answering(1))
	wantCode(t, err, abi.CodeInternal)
	first.Wait()
}

// busy waits until a child runs.
func busy(t *testing.T, c *Compiler) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); c.Stats().Children == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no child was started")
		}
	}
}

// PF-D9: compiling is not the engine's to cancel, so the child is killed; the worker is free again
// long before the child's own limits.
func TestCancelKillsTheChild(t *testing.T) {
	c, _, _ := start(t, limit(t, "compileCpu", 600_000), limit(t, "compileWall", 600_000))
	bomb := moduleOf(copies(bombIfElse(8192), 30)...)
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		_, err := c.Compile(ctx, DigestOf(bomb), bomb)
		wantCode(t, err, abi.CodeCanceled)
	})
	busy(t, c)
	cancel()
	gone.Wait()
	mustCompile(t, c, answering(1))

	deadline, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Compile(deadline, DigestOf(bomb), bomb)
	wantCode(t, err, abi.CodeDeadline)
}

// One caller that gives up takes nothing from the others.
func TestOneOfTwoCallersLeaves(t *testing.T) {
	c, _, _ := start(t)
	module := moduleOf(bombIfElse(4000))
	var callers sync.WaitGroup
	callers.Go(func() {
		if _, err := c.Compile(t.Context(), DigestOf(module), module); err != nil {
			t.Error(err)
		}
	})
	busy(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	callers.Go(func() {
		_, err := c.Compile(ctx, DigestOf(module), module)
		wantCode(t, err, abi.CodeCanceled)
	})
	cancel()
	callers.Wait()
}

func TestQueueIsBounded(t *testing.T) {
	c, _, _ := start(t, func(o *Options) { o.Queue = 1 })
	bomb := moduleOf(copies(bombIfElse(8192), 30)...)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	begin := func(module []byte) {
		callers.Go(func() {
			_, err := c.Compile(ctx, DigestOf(module), module)
			wantCode(t, err, abi.CodeCanceled)
		})
	}
	begin(bomb)
	busy(t, c)
	begin(answering(1))
	for deadline := time.Now().Add(time.Minute); len(c.queue) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
		}
	}
	_, err := c.Compile(t.Context(), DigestOf(answering(2)), answering(2))
	wantCode(t, err, abi.CodeOverloaded)
	cancel()
	callers.Wait()
}

func TestCloseEndsWhatRunsAndWaits(t *testing.T) {
	c, _, _ := start(t)
	bomb := moduleOf(copies(bombIfElse(8192), 30)...)
	var callers sync.WaitGroup
	callers.Go(func() {
		_, err := c.Compile(t.Context(), DigestOf(bomb), bomb)
		wantCode(t, err, abi.CodeDraining)
	})
	busy(t, c)
	for i := range byte(3) {
		callers.Go(func() {
			_, err := c.Compile(t.Context(), DigestOf(answering(i)), answering(i))
			wantCode(t, err, abi.CodeDraining)
		})
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	callers.Wait()
	_, err := c.Load(t.Context(), Digest{})
	wantCode(t, err, abi.CodeDraining)
	_, err = c.Compile(t.Context(), Digest{}, answering(1))
	wantCode(t, err, abi.CodeDraining)
}

func TestLimitsOfSize(t *testing.T) {
	c, _, _ := start(t, limit(t, "moduleBytes", 16))
	_, err := c.Compile(t.Context(), Digest{}, answering(1))
	wantCode(t, err, abi.CodePayloadTooLarge)
	if c.Stats().Children != 0 {
		t.Error("a child was started")
	}
}

// What is wrong with a module is told, in harmless characters; what is wrong with the machinery is
// not.
func TestInvalidModules(t *testing.T) {
	c, _, _ := start(t)
	hostile := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	hostile = append(hostile, section(1, []byte{1, 0x60, 0, 0})...)
	hostile = append(hostile, section(3, []byte{1, 0})...)
	name := "<b>\x1b[2J\r\n\x00/etc\u202e"
	export := append([]byte{1, byte(len(name))}, name...)
	hostile = append(hostile, section(7, append(export, 0, 0))...)
	hostile = append(hostile, section(10, []byte{1, 3, 0, 0x6a, 0x0b})...) // add with nothing to add
	for label, module := range map[string][]byte{
		"empty":          nil,
		"not wasm":       []byte("(module)"),
		"truncated":      answering(1)[:20],
		"type error":     moduleOf([]byte{0, 0x41, 0, 0x0b}),
		"index past end": moduleOf([]byte{0, 0x10, 1, 0x0b}),
		"memory too big": append([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(5, []byte{1, 0, 0x81, 0x20})...),
		"hostile name":   hostile,
	} {
		_, err := c.Compile(t.Context(), DigestOf(module), module)
		wantCode(t, err, abi.CodeModuleInvalid)
		public := abi.AsError(err).Message
		if strings.ContainsFunc(public, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' }) || len(public) > 600 {
			t.Errorf("%s: %q", label, public)
		}
		if strings.Contains(public, os.TempDir()) {
			t.Errorf("%s shows a path: %q", label, public)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	store := &modules{}
	for _, o := range []Options{
		{Dir: t.TempDir(), Key: testKey[:31], Source: store.source},
		{Dir: t.TempDir(), Key: testKey},
		{Key: testKey, Source: store.source},
	} {
		o.Limits = abi.DefaultLimits()
		if c, err := New(t.Context(), o); err == nil {
			t.Errorf("accepted: %+v", o)
			_ = c.Close()
		}
	}
}

// What a killed process left is gone after the next start; what is not ours stays.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	left := []string{"tmp/compile-1/module/x", "tmp/load-2/wazero-dev/y", "cache/" + Digest{}.String() + unfinished + "Z"}
	for _, path := range append(left, "tmp/upload-3") {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	store := &modules{}
	c, err := New(t.Context(), Options{Dir: dir, Key: testKey, Limits: abi.DefaultLimits(), Source: store.source})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range left {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tmp/upload-3")); err != nil {
		t.Error(err)
	}
}
