package compile

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// S14, PF-I6: whatever happens to a file of the cache, it is refused and made again beside the load path, the code that runs is
// the right one, and this process compiles nothing.
func TestTamperedFiles(t *testing.T) {
	c, store, dir := start(t)
	module, other := answering(1), answering(2)
	digest := store.add(module)
	mustCompile(t, c, module)
	otherName := mustCompile(t, c, other).Digest().String()
	path := filepath.Join(dir, "cache", digest.String())
	otherPath := filepath.Join(dir, "cache", otherName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(otherPath)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := unseal(testKey, digest, c.fingerprint, good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) error { return os.WriteFile(path, b, 0o600) }
	flipped := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 0x40
		return b
	}
	altered := func(change func(*Artifact)) []byte {
		a := *parsed
		change(&a)
		return seal(testKey, &a)
	}
	for _, tt := range []struct {
		name   string
		tamper func() error
	}{
		{"another module's file under this name", func() error { return write(foreign) }},
		{"truncated to nothing", func() error { return write(nil) }},
		{"truncated in the code", func() error { return write(good[:len(good)-100]) }},
		{"truncated by one byte", func() error { return write(good[:len(good)-1]) }},
		{"longer", func() error { return write(append(bytes.Clone(good), 0)) }},
		{"a bit of the magic", func() error { return write(flipped(0)) }},
		{"a bit of the fingerprint", func() error { return write(flipped(len(sealMagic))) }},
		{"a bit of the name", func() error { return write(flipped(sealFixed + 20)) }},
		{"a bit of the code", func() error { return write(flipped(len(good) - 60)) }},
		{"a bit of the MAC", func() error { return write(flipped(len(good) - 1)) }},
		{"sealed with another key", func() error { return write(seal(bytes.Repeat([]byte{1}, 32), parsed)) }},
		{"made by another engine", func() error {
			return write(altered(func(a *Artifact) { a.fingerprint = strings.Repeat("0", fingerprintSize) }))
		}},
		{"sealed with a path as name", func() error {
			return write(altered(func(a *Artifact) { a.name = "../../" + a.name }))
		}},
		{"deleted", func() error { return os.Remove(path) }},
		{"a link to the other file", func() error { return errors.Join(os.Remove(path), os.Symlink(otherPath, path)) }},
		{"a directory", func() error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		}},
		{"huge and sparse", func() error { return os.Truncate(path, 1<<40) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := c.Stats()
			if err := tt.tamper(); err != nil {
				t.Fatal(err)
			}
			_, err := c.Load(t.Context(), digest)
			wantCode(t, err, abi.CodeImageNotReady)
			if got, err := call(t, eventually(t, c, digest), module); got != 1 || err != nil {
				t.Errorf("f: %d, %v", got, err)
			}
			after := c.Stats()
			if after.Rebuilds != before.Rebuilds+1 || after.Refused+after.Missing <= before.Refused+before.Missing {
				t.Errorf("%+v, then %+v", before, after)
			}
		})
	}
	if now, err := os.ReadFile(otherPath); err != nil || !bytes.Equal(now, foreign) {
		t.Errorf("the other file: %v", err)
	}
}

// S14: two files exchanged.
func TestSwappedFiles(t *testing.T) {
	c, store, dir := start(t)
	one, two := store.add(answering(1)), store.add(answering(2))
	mustCompile(t, c, answering(1))
	mustCompile(t, c, answering(2))
	at := func(d string) string { return filepath.Join(dir, "cache", d) }
	err := errors.Join(os.Rename(at(one.String()), at("x")), os.Rename(at(two.String()), at(one.String())),
		os.Rename(at("x"), at(two.String())))
	if err != nil {
		t.Fatal(err)
	}
	for want, digest := range map[uint64]Digest{1: one, 2: two} {
		_, err := c.Load(t.Context(), digest)
		wantCode(t, err, abi.CodeImageNotReady)
		if got, err := call(t, eventually(t, c, digest), answering(byte(want))); got != want || err != nil {
			t.Errorf("f: %d, %v", got, err)
		}
	}
}

// S14: an artifact whose MAC holds and whose code is not found by the engine (as after a change of
// the engine's key that the fingerprint missed) stops before any code is generated.
func TestEngineMissNeverCompiles(t *testing.T) {
	c, store, _ := start(t)
	module := answering(1)
	digest := store.add(module)
	a := mustCompile(t, c, module)
	for name, change := range map[string]func(*Artifact){
		"another key":       func(a *Artifact) { a.name = a.name[:len(a.name)-4] + "0000" },
		"no code":           func(a *Artifact) { a.name, a.code = "", nil },
		"another version":   func(a *Artifact) { a.name = strings.Replace(a.name, "wazero-", "wazero-v0.", 1) },
		"damaged code":      func(a *Artifact) { a.code = bytes.Repeat([]byte{0xcc}, len(a.code)) },
		"code of a release": func(a *Artifact) { a.code = bytes.Replace(a.code, []byte("dev"), []byte("old"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "code of a release" && !bytes.Contains(a.code, []byte("dev")) {
				t.Skip("this binary knows the engine's version")
			}
			bad := *a
			change(&bad)
			before := c.Stats()
			_, _, err := LoadModule(t.Context(), RuntimeConfig(), &bad, module)
			wantCode(t, err, abi.CodeImageNotReady)
			if n := ParentCompiles(); n != 0 {
				t.Errorf("this process compiled %d times: %v", n, err)
			}
			if got, err := call(t, eventually(t, c, digest), module); got != 1 || err != nil {
				t.Errorf("f: %d, %v", got, err)
			}
			if c.Stats().Rebuilds == before.Rebuilds {
				t.Error("it was not made again")
			}
		})
	}
	_, _, err := LoadModule(t.Context(), RuntimeConfig(), a, answering(2))
	wantCode(t, err, abi.CodeImageNotReady)
	if !errors.Is(err, errOtherModule) {
		t.Error(err)
	}
}

// The proof in loadFrom is not vacuous: an engine that does compile is caught.
func TestACompilationWouldBeSeen(t *testing.T) {
	dir := t.TempDir()
	name, err := generate(t.Context(), dir, answering(1))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := untouched(dir, path, name, before); err != nil {
		t.Error(err)
	}
	if _, err := generate(t.Context(), dir, answering(2)); err == nil {
		t.Error("two files and no complaint")
	}
	if err := untouched(dir, path, name, before); err == nil {
		t.Error("a new file was not seen")
	}
}

// Without a cache entry the engine stops before it generates code.
func TestWithoutCompiling(t *testing.T) {
	c, store, _ := start(t)
	module := moduleOf(copies(bombIfElse(8192), 30)...) // minutes, if it were compiled
	store.add(module)
	a := &Artifact{
		digest: DigestOf(module), module: DigestOf(module), fingerprint: c.fingerprint, owner: c,
		name: "wazero-dev/" + strings.Repeat("0", 64), code: []byte("nothing"),
	}
	_, _, err := LoadModule(t.Context(), RuntimeConfig(), a, module)
	wantCode(t, err, abi.CodeImageNotReady)
	if !errors.Is(err, errWouldCompile) {
		t.Error(err)
	}
}

// S14: files vanish and rot while everybody loads; everybody runs the right code or is told to
// wait, and this process compiles nothing.
func TestDeleteUnderLoad(t *testing.T) {
	c, store, dir := start(t, func(o *Options) { o.Workers = 2 })
	const kinds = 4
	var digests [kinds]Digest
	for i := range digests {
		digests[i] = store.add(answering(byte(i)))
		mustCompile(t, c, answering(byte(i)))
	}
	var ran, waited atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				i := rand.IntN(kinds)
				a, err := c.Load(context.Background(), digests[i])
				var got uint64
				if err == nil {
					got, err = call(t, a, answering(byte(i)))
				}
				switch {
				case abi.CodeOf(err) == abi.CodeImageNotReady:
					waited.Add(1)
					time.Sleep(time.Millisecond)
				case err != nil || got != uint64(i):
					t.Errorf("f: %d, want %d, %v", got, i, err)
					return
				default:
					ran.Add(1)
				}
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			path := filepath.Join(dir, "cache", digests[rand.IntN(kinds)].String())
			if rand.IntN(2) == 0 {
				_ = os.Remove(path)
			} else {
				_ = os.Truncate(path, 100)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	for deadline := time.Now().Add(time.Minute); ran.Load() < 100 || waited.Load() < 20 || c.Stats().Rebuilds < 8; {
		if time.Now().After(deadline) || t.Failed() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	group.Wait()
	t.Logf("ran %d, waited %d, %+v", ran.Load(), waited.Load(), c.Stats())
	for i, d := range digests {
		if got, err := call(t, eventually(t, c, d), answering(byte(i))); got != uint64(i) || err != nil {
			t.Errorf("f: %d, %v", got, err)
		}
	}
}

// A rebuild that fails is not tried for every load, and an upload of the bytes ends the pause.
func TestFailedRebuildPauses(t *testing.T) {
	c, store, _ := start(t)
	module := answering(3)
	digest := DigestOf(module)
	store.err = errors.New("the store is away")
	ask := func() int {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.asks
	}
	for deadline := time.Now().Add(time.Minute); ask() == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, err := c.Load(t.Context(), digest)
		wantCode(t, err, abi.CodeImageNotReady)
	}
	for range 100 {
		_, err := c.Load(t.Context(), digest)
		wantCode(t, err, abi.CodeImageNotReady)
		time.Sleep(time.Millisecond)
	}
	if got := ask(); got != 1 {
		t.Errorf("asked %d times", got)
	}
	mustCompile(t, c, module)
	if err := c.Forget(digest); err != nil {
		t.Fatal(err)
	}
	store.mu.Lock()
	store.err = nil
	store.mu.Unlock()
	store.add(module)
	if got, err := call(t, eventually(t, c, digest), module); got != 3 || err != nil {
		t.Errorf("f: %d, %v", got, err)
	}
}
