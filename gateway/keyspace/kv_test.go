package keyspace

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

func TestMain(m *testing.M) {
	crashChild()
	goleak.VerifyTestMain(m)
}

func openStore(t testing.TB, dir string) store.Store {
	t.Helper()
	s, err := badger.Open(dir, false)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func someSpec() authority.Spec {
	return authority.Spec{
		Org: "acme", Space: "lab", Biome: "notes", Session: "session-1", Workspace: "WS1",
		Floor: abi.Public, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated,
		Limits: abi.DefaultLimits(),
	}
}

// scope is an invocation of its own.
func scope(spec authority.Spec) (boundary.Scope, *boundary.Invocation) {
	a := authority.New(spec, func() *abi.Error { return nil })
	inv := boundary.New(boundary.Spec{Authority: a})
	return boundary.Scope{Authority: a, Flow: inv}, inv
}

type keys struct {
	testing.TB
	kv   *KV
	spec authority.Spec
	last *boundary.Invocation
}

func newKeys(t testing.TB, s store.Store) *keys { return &keys{TB: t, kv: New(s), spec: someSpec()} }

func (k *keys) with(change func(*authority.Spec)) *keys {
	c := *k
	change(&c.spec)
	return &c
}

func (k *keys) scope() boundary.Scope {
	sc, inv := scope(k.spec)
	k.last = inv
	return sc
}

func (k *keys) put(key, value string) abi.Code {
	_, err := k.kv.Put(context.Background(), k.scope(), key, []byte(value))
	return abi.CodeOf(err)
}

func (k *keys) get(key string) (string, abi.Code) {
	r, err := k.kv.Get(context.Background(), k.scope(), key)
	return string(r.Body), abi.CodeOf(err)
}

func (k *keys) delete(key string) abi.Code {
	_, err := k.kv.Delete(context.Background(), k.scope(), key)
	return abi.CodeOf(err)
}

func (k *keys) list(prefix, after string, limit int) (out []string, more bool) {
	k.Helper()
	r, err := k.kv.List(context.Background(), k.scope(), prefix, after, limit)
	must(k, err)
	must(k, json.Unmarshal(r.Body, &out))
	var meta struct {
		More  bool `json:"more"`
		Count int  `json:"count"`
	}
	must(k, abi.DecodeStrict(r.Meta, &meta))
	if meta.Count != len(out) {
		k.Errorf("count %d of %d keys", meta.Count, len(out))
	}
	return out, meta.More
}

func (k *keys) is(got, want abi.Code) {
	k.Helper()
	if got != want {
		k.Errorf("%q, want %q", got, want)
	}
}

// PF-E11
func TestPutThenGetInTheNextCallAndTheNextProcess(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	k := newKeys(t, s)
	k.is(k.put("note/1", "hello"), "")
	k.is(k.put("empty", ""), "")
	for range 2 {
		if v, c := k.get("note/1"); v != "hello" || c != "" {
			t.Errorf("%q, %s", v, c)
		}
		if v, c := k.get("empty"); v != "" || c != "" {
			t.Errorf("%q, %s", v, c)
		}
		must(t, s.Close())
		s = openStore(t, dir)
		k = newKeys(t, s)
	}
	k.is(k.put("note/1", "again"), "")
	if v, _ := k.get("note/1"); v != "again" {
		t.Errorf("%q", v)
	}
	k.is(k.delete("note/1"), "")
	k.is(k.delete("note/1"), abi.CodeKeyNotFound)
	if _, c := k.get("note/1"); c != abi.CodeKeyNotFound {
		t.Error(c)
	}
}

// PF-E3: no key and no name reaches into another key space.
func TestKeySpacesAreApart(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	spaces := []func(*authority.Spec){
		func(*authority.Spec) {},
		func(s *authority.Spec) { s.Biome = "other" },
		func(s *authority.Spec) { s.Space = "field" },
		func(s *authority.Spec) { s.Org = "rival" },
		func(s *authority.Spec) { s.Org, s.Space = "acm", "elab" },
		func(s *authority.Spec) { s.Space, s.Biome = "labn", "otes" },
		func(s *authority.Spec) { s.Space, s.Biome = "lab:notes", ""+"x" },
		func(s *authority.Spec) { s.Biome = "notes\x00k" },
		func(s *authority.Spec) { s.Biome = "note" },
	}
	all := []string{"k", "notes:k", "lab/notes/k", ":", "kv-meta", "s\x01k"}
	for i, change := range spaces {
		c := k.with(change)
		for _, key := range all {
			_, code := c.get(key)
			if code == "" {
				t.Errorf("space %d has %q before anything was put", i, key)
			}
			if strings.Contains(key, "\x01") {
				c.is(c.put(key, "x"), abi.CodeKeyInvalid)
				continue
			}
			c.is(c.put(key, fmt.Sprint(i)), "")
		}
	}
	for i, change := range spaces {
		c := k.with(change)
		if got, _ := c.list("", "", 0); len(got) != len(all)-1 {
			t.Errorf("space %d: %q", i, got)
		}
		if v, _ := c.get("k"); v != fmt.Sprint(i) {
			t.Errorf("space %d: %q", i, v)
		}
	}
	for _, change := range []func(*authority.Spec){
		func(s *authority.Spec) { s.Org = "" }, func(s *authority.Spec) { s.Space = "" }, func(s *authority.Spec) { s.Biome = "" },
	} {
		c := k.with(change)
		c.is(c.put("k", "x"), abi.CodeNotFound)
	}
}

func TestKeysThatAreNoKeys(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	for _, key := range []string{"", "a\x00b", "\x00", "a\nb", "\x7f", "a\u0085", "a\u202eb", "\xff", strings.Repeat("k", 513)} {
		k.is(k.put(key, "x"), abi.CodeKeyInvalid)
		k.is(k.delete(key), abi.CodeKeyInvalid)
		if _, c := k.get(key); c != abi.CodeKeyInvalid {
			t.Errorf("%q: %s", key, c)
		}
	}
	k.is(k.put(strings.Repeat("k", 512), "x"), "")
	k.is(k.put("日本/:%2e../\\*", "x"), "")
}

// PF-D1
func TestLimits(t *testing.T) {
	set := func(name string, v int64) func(*authority.Spec) {
		return func(s *authority.Spec) {
			if err := s.Limits.Set(name, v); err != nil {
				panic(err)
			}
		}
	}
	st := openStore(t, t.TempDir())
	k := newKeys(t, st)
	k.is(k.put("v", strings.Repeat("x", 256<<10)), "")
	k.is(k.put("v", strings.Repeat("x", 256<<10+1)), abi.CodeValueTooLarge)
	hard := k.with(set("valueBytes", 1<<20))
	hard.is(hard.put("v", strings.Repeat("x", 1<<20)), "")
	k.is(k.delete("v"), "")

	short := k.with(set("keyBytes", 3))
	short.is(short.put("abcd", ""), abi.CodeKeyInvalid)

	few := k.with(set("keys", 2))
	few.is(few.put("a", "1"), "")
	few.is(few.put("b", "1"), "")
	few.is(few.put("c", "1"), abi.CodeKVFull)
	few.is(few.put("a", "2"), "")
	few.is(few.delete("b"), "")
	few.is(few.put("c", "1"), "")
	other := few.with(func(s *authority.Spec) { s.Biome = "other" })
	other.is(other.put("c", "1"), "")

	small := k.with(func(s *authority.Spec) { s.Biome = "bytes" }).with(set("kvBytes", 100))
	small.is(small.put("k", strings.Repeat("x", 99)), "")
	small.is(small.put("k", strings.Repeat("x", 100)), abi.CodeKVFull)
	small.is(small.put("l", ""), abi.CodeKVFull)
	small.is(small.put("k", strings.Repeat("x", 49)), "")
	small.is(small.put("l", strings.Repeat("x", 49)), "")
	small.is(small.put("l", strings.Repeat("x", 50)), abi.CodeKVFull)
}

// Puts at the same time cannot pass a limit together.
func TestLimitsUnderConcurrency(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	must(t, k.spec.Limits.Set("keys", 10))
	var wg sync.WaitGroup
	var stored atomic.Int64
	for w := range 8 {
		c := k.with(func(*authority.Spec) {})
		wg.Go(func() {
			for i := range 5 {
				switch code := c.put(fmt.Sprint(w, "/", i), "x"); code {
				case "":
					stored.Add(1)
				case abi.CodeKVFull:
				default:
					t.Error(code)
				}
			}
		})
	}
	wg.Wait()
	if got, _ := k.list("", "", 0); len(got) != 10 || stored.Load() != 10 {
		t.Errorf("%d keys, %d puts", len(got), stored.Load())
	}
}

func TestList(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("n/%02d", i)
		k.is(k.put(key, "x"), "")
		want = append(want, key)
	}
	k.is(k.put("m", "x"), "")
	k.is(k.put("n", "x"), "")
	k.is(k.put("n0", "x"), "")
	var got []string
	for after := ""; ; {
		page, more := k.list("n/", after, 10)
		got = append(got, page...)
		if !more {
			break
		}
		after = page[len(page)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages:\n%s", diff)
	}
	if got, more := k.list("n", "n/24", 0); !cmp.Equal(got, []string{"n0"}) || more {
		t.Errorf("%q %v", got, more)
	}
	if got, more := k.list("n/", "a", 25); len(got) != 25 || more {
		t.Errorf("%d keys, more %v", len(got), more)
	}
	if _, err := k.kv.List(t.Context(), k.scope(), "\x00", "", 0); abi.CodeOf(err) != abi.CodeKeyInvalid {
		t.Error(err)
	}
	big := k.with(func(s *authority.Spec) { s.Biome = "big" })
	for i := range 600 {
		big.is(big.put(fmt.Sprintf("%04d%s", i, strings.Repeat("k", 500)), ""), "")
	}
	r, err := big.kv.List(t.Context(), big.scope(), "", "", 0)
	must(t, err)
	if len(r.Body) > maxListBytes || !strings.Contains(string(r.Meta), `"more":true`) {
		t.Errorf("%d bytes, %s", len(r.Body), r.Meta)
	}
}

// X39
func TestTheGrantNamesKeys(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	for _, key := range []string{"note/1", "note/2", "other"} {
		k.is(k.put(key, "x"), "")
	}
	g := k.with(func(s *authority.Spec) { s.Resources = glob.Sets{glob.NewSet([]string{"note/*", "{"})} })
	g.is(g.put("note/3", "x"), "")
	g.is(g.put("other", "x"), abi.CodeResourceNotInGlob)
	g.is(g.delete("absent"), abi.CodeResourceNotInGlob)
	if _, c := g.get("other"); c != abi.CodeResourceNotInGlob {
		t.Error(c)
	}
	if got, more := g.list("", "", 3); !cmp.Equal(got, []string{"note/1", "note/2", "note/3"}) || more {
		t.Errorf("%q %v", got, more)
	}
	none := k.with(func(s *authority.Spec) {
		s.Resources = glob.Sets{glob.NewSet([]string{"note/*"}), glob.NewSet([]string{"\x00"})}
	})
	if _, err := none.kv.List(t.Context(), none.scope(), "", "", 0); abi.CodeOf(err) != abi.CodeResourceNotInGlob {
		t.Error(err)
	}
}

// S5: labels are fixed when a key is made.
func TestLabelsOfKeys(t *testing.T) {
	k := newKeys(t, openStore(t, t.TempDir()))
	at := func(start, floor, ceiling abi.Classification) *keys {
		return k.with(func(s *authority.Spec) { s.Start, s.Floor, s.Ceiling = start, floor, ceiling })
	}
	high := at(abi.Secret, abi.Secret, abi.Regulated)
	high.is(high.put("high", "secret value"), "")
	low := at(abi.Public, abi.Public, abi.Internal)
	low.is(low.put("low", "x"), "")

	// A new key needs a label no higher than the key space's.
	up := at(abi.Secret, abi.Public, abi.Regulated)
	up.is(up.put("new", "x"), abi.CodeClassificationFlow)
	up.is(up.delete("low"), abi.CodeClassificationFlow)
	up.is(up.put("low", "x"), abi.CodeClassificationFlow)
	up.is(up.put("high", "still secret"), "")

	// Reading raises; above the ceiling is absent.
	reader := at(abi.Public, abi.Public, abi.Regulated)
	if v, c := reader.get("high"); v != "still secret" || c != "" || reader.last.Label() != abi.Secret {
		t.Errorf("%q, %q at %s", v, c, reader.last.Label())
	}
	if got, _ := reader.list("", "", 0); !cmp.Equal(got, []string{"high", "low"}) || reader.last.Label() != abi.Secret {
		t.Errorf("%q at %s", got, reader.last.Label())
	}
	_, hidden := low.kv.Get(t.Context(), low.scope(), "high")
	_, absent := low.kv.Get(t.Context(), low.scope(), "nothing")
	if hidden.Error() != absent.Error() {
		t.Errorf("hidden: %v, absent: %v", hidden, absent)
	}
	low.is(low.delete("high"), abi.CodeKeyNotFound)
	if got, _ := low.list("", "", 1); !cmp.Equal(got, []string{"low"}) {
		t.Errorf("%q", got)
	}
	// A put that cannot be seen does not make the key visible, nor lower.
	low.is(low.put("high", "blind"), "")
	if _, c := low.get("high"); c != abi.CodeKeyNotFound {
		t.Error(c)
	}
	if v, _ := reader.get("high"); v != "blind" || reader.last.Label() != abi.Secret {
		t.Errorf("%q at %s", v, reader.last.Label())
	}
	// A floor above the ceiling leaves nothing to see or do.
	shut := at(abi.Public, abi.Secret, abi.Internal)
	shut.is(shut.put("x", "x"), abi.CodeClassificationCeiling)
	shut.is(shut.delete("low"), abi.CodeKeyNotFound)
	if got, _ := shut.list("", "", 0); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// Against a map: the totals stay what the keys add up to.
func TestKeySpaceIsAMap(t *testing.T) {
	st := openStore(t, t.TempDir())
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		k := newKeys(t, st).with(func(s *authority.Spec) { s.Biome = fmt.Sprint("b", n) })
		model := map[string]string{}
		key := rapid.SampledFrom([]string{"a", "a/b", "ab", "b", "é"})
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			name := key.Draw(rt, "key")
			_, there := model[name]
			switch rapid.IntRange(0, 2).Draw(rt, "call") {
			case 0:
				v := rapid.StringN(0, 20, -1).Draw(rt, "value")
				if c := k.put(name, v); c != "" {
					rt.Fatal(c)
				}
				model[name] = v
			case 1:
				if c := k.delete(name); (c == "") != there {
					rt.Fatalf("delete of %q: %q", name, c)
				}
				delete(model, name)
			case 2:
				if v, c := k.get(name); (c == "") != there || v != model[name] {
					rt.Fatalf("get of %q: %q, %q", name, v, c)
				}
			}
		}
		var want totals
		for name, v := range model {
			want.Keys++
			want.Bytes += int64(len(name) + len(v))
		}
		space, err := namesOf(&k.spec)
		must(t, err)
		var got *totals
		must(t, st.View(context.Background(), func(tx store.Tx) error {
			got, err = decode[totals](tx, space.count)
			return err
		}))
		if got == nil {
			got = &totals{}
		}
		if *got != want {
			rt.Fatalf("totals %+v, keys add up to %+v", *got, want)
		}
	})
}
