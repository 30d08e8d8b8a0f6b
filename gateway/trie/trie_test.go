package trie

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hashes that meet on the first levels, on all of them, and nowhere.
var hashes = []func(int) uint64{
	func(int) uint64 { return 0 },
	func(k int) uint64 { return uint64(k) << 60 },
	func(k int) uint64 { return uint64(k%3) << 30 },
	func(k int) uint64 { return uint64(k) * 0x9e3779b97f4a7c15 },
}

// After any sequence of changes, in batches or not, the map holds what a plain map holds, and
// every map that was handed out before still holds what it held then.
func TestIsAMapAndOldOnesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := rapid.SampledFrom(hashes).Draw(t, "hash")
		var m Map[int, string]
		want := map[int]string{}
		type kept struct {
			m    Map[int, string]
			want map[int]string
		}
		var handedOut []kept
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			var b *Batch
			if rapid.Bool().Draw(t, "in a batch") {
				b = new(Batch)
			}
			for i := range rapid.IntRange(0, 40).Draw(t, "changes") {
				k := rapid.IntRange(0, 50).Draw(t, "key")
				if rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
					m = m.without(b, hash(k), k)
					delete(want, k)
					continue
				}
				v := fmt.Sprint(k, i)
				m = m.with(b, entry[int, string]{hash(k), k, v})
				want[k] = v
			}
			handedOut = append(handedOut, kept{m, maps.Clone(want)})
		}
		for _, h := range handedOut {
			if h.m.Len() != len(h.want) {
				t.Fatalf("%d entries, want %d", h.m.Len(), len(h.want))
			}
			if diff := cmp.Diff(h.want, maps.Collect(h.m.All())); diff != "" {
				t.Fatal(diff)
			}
			for k := range 51 {
				got, ok := h.m.root.get(hash(k), k)
				v, there := h.want[k]
				if got != v || ok != there {
					t.Fatalf("%d: %q %v, want %q %v", k, got, ok, v, there)
				}
			}
			tidy(t, h.m.root, true)
		}
	})
}

// tidy holds the shape: no empty nodes, and no node of one entry below another.
func tidy[K comparable, V any](t *rapid.T, n *node[K, V], top bool) {
	if n == nil {
		return
	}
	if n.holds&n.leads != 0 || !top && len(n.list)+2*len(n.nodes) < 2 || len(n.list)+len(n.nodes) == 0 {
		t.Fatalf("a node of %d entries and %d nodes", len(n.list), len(n.nodes))
	}
	for _, c := range n.nodes {
		tidy(t, c, false)
	}
}

func TestMany(t *testing.T) {
	const n = 20_000
	want := map[string]int{}
	for i := range n {
		want[fmt.Sprint(i)] = i
	}
	m := From(want)
	if diff := cmp.Diff(want, maps.Collect(m.All())); diff != "" || m.Len() != n {
		t.Fatal(diff)
	}
	if m.At("none") != 0 || m.At("17") != 17 {
		t.Error("At")
	}
	if _, ok := m.Get("none"); ok {
		t.Error("what is not there is there")
	}
	first := slices.Collect(func(yield func(string) bool) {
		for k := range m.All() {
			if !yield(k) {
				return
			}
			break
		}
	})
	if len(first) != 1 {
		t.Error("a listing that was ended went on")
	}
	for k := range want {
		m = m.Without(nil, k)
	}
	if m.Len() != 0 || m.root != nil {
		t.Errorf("%d left", m.Len())
	}
}

type pair struct{ a, b string }

// A lookup allocates nothing, whatever the key is made of.
func TestGetAllocatesNothing(t *testing.T) {
	m := From(map[pair][]int{{"a", "b"}: {1}, {"c", "d"}: {2}})
	k := pair{"a", "b"}
	if n := testing.AllocsPerRun(100, func() {
		if m.At(k) == nil {
			t.Error("not there")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchmarkMap(n int) (Map[pair, *int], []pair) {
	var m Map[pair, *int]
	b := new(Batch)
	keys := make([]pair, n)
	for i := range keys {
		keys[i] = pair{fmt.Sprintf("user:s%d", i/1000), fmt.Sprintf("bench:echo%d.run@1", i%1000)}
		m = m.With(b, keys[i], new(int))
	}
	return m, keys
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, keys := benchmarkMap(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if m.At(keys[i*7919%n]) == nil {
					b.Fatal("not there")
				}
			}
		})
	}
}

func BenchmarkWith(b *testing.B) {
	for _, n := range []int{1, 1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, keys := benchmarkMap(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m.With(nil, keys[i*7919%n], nil)
			}
		})
	}
}
