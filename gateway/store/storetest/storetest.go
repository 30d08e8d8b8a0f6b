// Package storetest is the suite that every implementation of [store.Store] passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Run holds an implementation to the contract. open gives an empty store, which the suite
// closes. reopen closes the store it is given and opens it again with all that is durable in
// it; nil for an implementation without durability.
func Run(t *testing.T, open func(testing.TB) store.Store, reopen func(testing.TB, store.Store) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"values":             values,
		"case":               caseSensitive,
		"read only":          readOnly,
		"all or nothing":     allOrNothing,
		"own changes":        ownChanges,
		"snapshot":           snapshot,
		"scan":               scan,
		"scan in scan":       scanInScan,
		"too large":          tooLarge,
		"no lost update":     noLostUpdate,
		"no write skew":      noWriteSkew,
		"no phantom":         noPhantom,
		"scan up to a point": partialScan,
		"one creator":        oneCreator,
		"context":            contextEnds,
		"close":              closeTwice,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			test(t, s)
		})
	}
	t.Run("model", func(t *testing.T) { model(t, open) })
	if reopen != nil {
		t.Run("durable", func(t *testing.T) { durable(t, open(t), reopen) })
	}
}

// enough is longer than anything here takes and shorter than a test run.
const enough = 30 * time.Second

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), enough)
	t.Cleanup(cancel)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s store.Store, kv ...string) {
	t.Helper()
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		for i := 0; i < len(kv); i += 2 {
			if err := tx.Set([]byte(kv[i]), []byte(kv[i+1])); err != nil {
				return err
			}
		}
		return nil
	}))
}

// get returns a value, or "absent".
func get(t testing.TB, s store.Store, key string) string {
	t.Helper()
	out := "absent"
	must(t, s.View(ctx(t), func(tx store.Tx) error {
		v, err := tx.Get([]byte(key))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		out = string(v)
		return err
	}))
	return out
}

func values(t *testing.T, s store.Store) {
	for _, v := range []string{"", "v", "\x00\xff", strings.Repeat("x", store.MinValue)} {
		put(t, s, "k\x00y", v)
		if got := get(t, s, "k\x00y"); got != v {
			t.Fatalf("got %d bytes back of %d", len(got), len(v))
		}
	}
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		return errors.Join(tx.Delete([]byte("k\x00y")), tx.Delete([]byte("never was")))
	}))
	if got := get(t, s, "k\x00y"); got != "absent" {
		t.Fatal("deleted and still there")
	}
	key, value := []byte("mine"), []byte("value")
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		err := tx.Set(key, value)
		copy(key, "XXXX")
		copy(value, "XXXXX")
		return err
	}))
	must(t, s.View(ctx(t), func(tx store.Tx) error {
		v, err := tx.Get([]byte("mine"))
		must(t, err)
		copy(v, "YYYYY")
		return nil
	}))
	if got := get(t, s, "mine"); got != "value" {
		t.Fatalf("the store shares memory with its callers: %q", got)
	}
}

func caseSensitive(t *testing.T, s store.Store) {
	put(t, s, "key", "lower", "KEY", "upper")
	if a, b := get(t, s, "key"), get(t, s, "KEY"); a != "lower" || b != "upper" {
		t.Fatalf("keys are folded: %q %q", a, b)
	}
}

func readOnly(t *testing.T, s store.Store) {
	must(t, s.View(ctx(t), func(tx store.Tx) error {
		if err := tx.Set([]byte("k"), nil); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Set in a view: %v", err)
		}
		if err := tx.Delete([]byte("k")); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Delete in a view: %v", err)
		}
		return nil
	}))
}

func allOrNothing(t *testing.T, s store.Store) {
	put(t, s, "a", "1")
	mine := errors.New("mine")
	err := s.Update(ctx(t), func(tx store.Tx) error {
		must(t, tx.Set([]byte("a"), []byte("2")))
		must(t, tx.Set([]byte("b"), []byte("2")))
		return mine
	})
	if err != mine { //nolint:errorlint // it must come back as it is
		t.Fatalf("got %v", err)
	}
	if a, b := get(t, s, "a"), get(t, s, "b"); a != "1" || b != "absent" {
		t.Fatalf("a failed update left %q %q", a, b)
	}
}

func ownChanges(t *testing.T, s store.Store) {
	put(t, s, "p/a", "old", "p/b", "old")
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		must(t, tx.Set([]byte("p/a"), []byte("new")))
		must(t, tx.Delete([]byte("p/b")))
		must(t, tx.Set([]byte("p/c"), []byte{}))
		if _, err := tx.Get([]byte("p/b")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("deleted here and still there: %v", err)
		}
		var seen []string
		must(t, tx.Scan([]byte("p/"), nil, func(k, v []byte) (bool, error) {
			seen = append(seen, string(k)+"="+string(v))
			return true, nil
		}))
		if diff := cmp.Diff([]string{"p/a=new", "p/c="}, seen); diff != "" {
			t.Error(diff)
		}
		return nil
	}))
}

func snapshot(t *testing.T, s store.Store) {
	put(t, s, "a", "1", "b", "1")
	must(t, s.View(ctx(t), func(tx store.Tx) error {
		before, err := tx.Get([]byte("a"))
		must(t, err)
		put(t, s, "a", "2", "b", "2")
		after, err := tx.Get([]byte("b"))
		must(t, err)
		if !bytes.Equal(before, after) {
			t.Errorf("a view saw two states: %s and %s", before, after)
		}
		return nil
	}))
}

func scan(t *testing.T, s store.Store) {
	put(t, s, "a", "0", "p", "1", "p1", "2", "p2", "3", "p21", "4", "q", "5")
	for _, c := range []struct {
		prefix, after string
		stop          int
		want          string
	}{
		{"p", "", 9, "p p1 p2 p21"},
		{"p", "p", 9, "p1 p2 p21"},
		{"p", "p1", 9, "p2 p21"},
		{"p", "p15", 9, "p2 p21"},
		{"p2", "", 9, "p2 p21"},
		{"p", "", 2, "p p1"},
		{"p", "z", 9, ""},
		{"p", "a", 9, "p p1 p2 p21"},
		{"", "", 9, "a p p1 p2 p21 q"},
		{"none", "", 9, ""},
	} {
		var got []string
		must(t, s.View(ctx(t), func(tx store.Tx) error {
			return tx.Scan([]byte(c.prefix), []byte(c.after), func(k, _ []byte) (bool, error) {
				got = append(got, string(k))
				return len(got) < c.stop, nil
			})
		}))
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
	mine := errors.New("mine")
	err := s.View(ctx(t), func(tx store.Tx) error {
		return tx.Scan(nil, nil, func(k, v []byte) (bool, error) { return true, mine })
	})
	if !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
}

func scanInScan(t *testing.T, s store.Store) {
	put(t, s, "a", "0")
	err := s.Update(ctx(t), func(tx store.Tx) error {
		return tx.Scan(nil, nil, func(_, _ []byte) (bool, error) {
			return true, tx.Scan(nil, nil, func(_, _ []byte) (bool, error) { return true, nil })
		})
	})
	if !errors.Is(err, store.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

func tooLarge(t *testing.T, s store.Store) {
	err := s.Update(ctx(t), func(tx store.Tx) error {
		for i := range 1 << 10 {
			if err := tx.Set(store.Key("big", store.Number(uint64(i))), make([]byte, store.MinValue)); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a gibibyte in one transaction: %v", err)
	}
	for _, c := range []struct{ key, value int }{{1 << 20, 0}, {1, 1 << 26}} {
		err := s.Update(ctx(t), func(tx store.Tx) error { return tx.Set(make([]byte, c.key), make([]byte, c.value)) })
		if !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("a key of %d and a value of %d bytes: %v", c.key, c.value, err)
		}
	}
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		for i := range store.MinTx / store.MinValue {
			if err := tx.Set([]byte(strings.Repeat("k", store.MinKey-1)+fmt.Sprint(i)), make([]byte, store.MinValue-store.MinKey)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// together runs fn n times at once and waits.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func noLostUpdate(t *testing.T, s store.Store) {
	put(t, s, "n", "")
	together(8, func(int) {
		for range 10 {
			must(t, s.Update(ctx(t), func(tx store.Tx) error {
				v, err := tx.Get([]byte("n"))
				if err != nil {
					return err
				}
				return tx.Set([]byte("n"), append(v, 'x'))
			}))
		}
	})
	if got := len(get(t, s, "n")); got != 80 {
		t.Fatalf("80 increments came to %d", got)
	}
}

// meeting makes the first try of two transactions overlap: both have read before either
// commits.
func meeting() func() {
	var wg sync.WaitGroup
	wg.Add(2)
	return func() { wg.Done(); wg.Wait() }
}

func noWriteSkew(t *testing.T, s store.Store) {
	for range 20 {
		put(t, s, "a", "on", "b", "on")
		meet := meeting()
		together(2, func(i int) {
			first := true
			must(t, s.Update(ctx(t), func(tx store.Tx) error {
				a, err := tx.Get([]byte("a"))
				if err != nil {
					return err
				}
				b, err := tx.Get([]byte("b"))
				if err != nil {
					return err
				}
				if first {
					first = false
					meet()
				}
				if string(a) == "on" && string(b) == "on" { // at least one must stay on
					return tx.Set([]byte([]string{"a", "b"}[i]), []byte("off"))
				}
				return nil
			}))
		})
		if get(t, s, "a")+get(t, s, "b") == "offoff" {
			t.Fatal("two transactions each relied on what the other changed")
		}
	}
}

func noPhantom(t *testing.T, s store.Store) {
	for round := range 20 {
		prefix := store.Key("seat", fmt.Sprint(round))
		meet := meeting()
		together(2, func(i int) {
			first := true
			must(t, s.Update(ctx(t), func(tx store.Tx) error {
				taken := 0
				err := tx.Scan(prefix, nil, func(_, _ []byte) (bool, error) { taken++; return true, nil })
				if err != nil {
					return err
				}
				if first {
					first = false
					meet()
				}
				if taken > 0 { // one seat
					return nil
				}
				return tx.Set(store.Key("seat", fmt.Sprint(round), fmt.Sprint(i)), []byte("taken"))
			}))
		})
		taken := 0
		must(t, s.View(ctx(t), func(tx store.Tx) error {
			return tx.Scan(prefix, nil, func(_, _ []byte) (bool, error) { taken++; return true, nil })
		}))
		if taken != 1 {
			t.Fatalf("%d transactions found the range empty and took the one seat", taken)
		}
	}
}

// partialScan holds that a scan conflicts up to where it stopped.
func partialScan(t *testing.T, s store.Store) {
	put(t, s, "p/b", "", "p/d", "")
	tries := 0
	must(t, s.Update(ctx(t), func(tx store.Tx) error {
		tries++
		var got string
		err := tx.Scan([]byte("p/"), nil, func(k, _ []byte) (bool, error) { got = string(k); return false, nil })
		if err != nil {
			return err
		}
		if tries == 1 {
			put(t, s, "p/a", "")
		}
		return tx.Set([]byte("first"), []byte(got))
	}))
	if got := get(t, s, "first"); got != "p/a" || tries != 2 {
		t.Fatalf("the first key is said to be %s after %d tries", got, tries)
	}
}

func oneCreator(t *testing.T, s store.Store) {
	var mu sync.Mutex
	won := 0
	together(16, func(i int) {
		taken := errors.New("taken")
		err := s.Update(ctx(t), func(tx store.Tx) error {
			if _, err := tx.Get([]byte("it")); !errors.Is(err, store.ErrNotFound) {
				return errors.Join(taken, err)
			}
			return tx.Set([]byte("it"), []byte{byte(i)})
		})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			won++
		} else if !errors.Is(err, taken) {
			t.Error(err)
		}
	})
	if won != 1 {
		t.Fatalf("%d creators won", won)
	}
}

func contextEnds(t *testing.T, s store.Store) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ran := false
	fn := func(store.Tx) error { ran = true; return nil }
	if err := s.Update(ended, fn); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("Update: %v, ran %v", err, ran)
	}
	if err := s.View(ended, fn); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("View: %v, ran %v", err, ran)
	}
}

func closeTwice(t *testing.T, s store.Store) {
	began, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Update(context.Background(), func(tx store.Tx) error {
			close(began)
			time.Sleep(10 * time.Millisecond)
			return tx.Set([]byte("k"), nil)
		})
	}()
	<-began
	must(t, s.Close())
	must(t, <-done) // Close waited for it
	must(t, s.Close())
	if err := s.View(ctx(t), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View: %v", err)
	}
	if err := s.Update(ctx(t), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update: %v", err)
	}
}

// model compares the store with a map over random transactions.
func model(t *testing.T, open func(testing.TB) store.Store) {
	s := open(t)
	defer s.Close()
	key := rapid.StringMatching(`[ab]{1,3}`)
	want := map[string]string{}
	rapid.Check(t, func(rt *rapid.T) {
		next := map[string]string{}
		for k, v := range want {
			next[k] = v
		}
		fails := rapid.Bool().Draw(rt, "fails")
		err := s.Update(ctx(t), func(tx store.Tx) error {
			for range rapid.IntRange(1, 5).Draw(rt, "changes") {
				k := key.Draw(rt, "key")
				if rapid.Bool().Draw(rt, "delete") {
					delete(next, k)
					must(t, tx.Delete([]byte(k)))
					continue
				}
				v := rapid.StringN(0, 3, 8).Draw(rt, "value")
				next[k] = v
				must(t, tx.Set([]byte(k), []byte(v)))
			}
			if fails {
				return errors.New("no")
			}
			return nil
		})
		if (err != nil) != fails {
			rt.Fatal(err)
		}
		if !fails {
			want = next
		}
		prefix := rapid.StringMatching(`[ab]{0,2}`).Draw(rt, "prefix")
		after := rapid.StringMatching(`[ab]{0,3}`).Draw(rt, "after")
		expect := []string{}
		for k, v := range want {
			if strings.HasPrefix(k, prefix) && k > after {
				expect = append(expect, k+"="+v)
			}
		}
		sort.Slice(expect, func(i, j int) bool {
			a, _, _ := strings.Cut(expect[i], "=")
			b, _, _ := strings.Cut(expect[j], "=")
			return a < b
		})
		got := []string{}
		must(t, s.View(ctx(t), func(tx store.Tx) error {
			return tx.Scan([]byte(prefix), []byte(after), func(k, v []byte) (bool, error) {
				got = append(got, string(k)+"="+string(v))
				return true, nil
			})
		}))
		if diff := cmp.Diff(expect, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func durable(t *testing.T, s store.Store, reopen func(testing.TB, store.Store) store.Store) {
	put(t, s, "kept", "1", "gone", "1")
	must(t, s.Update(ctx(t), func(tx store.Tx) error { return tx.Delete([]byte("gone")) }))
	s = reopen(t, s)
	defer s.Close()
	if kept, gone := get(t, s, "kept"), get(t, s, "gone"); kept != "1" || gone != "absent" {
		t.Fatalf("after opening again: %q %q", kept, gone)
	}
}
