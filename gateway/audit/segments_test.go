package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// A log in many files, with ids out of order and rows that stay open through several files, answers as
// one that is all in memory would: every row is found, whole, and a listing has each once and in
// order, in either direction, whatever the pages. After opening again, too.
func TestRowsAcrossFiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, remove := quickDir(rt)
		defer remove()
		o := Options{Dir: dir, Durability: DurabilityProcess, SegmentBytes: rapid.SampledFrom([]int64{1, 1, 3 << 10}).Draw(rt, "segment")}
		l, err := Open(o)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close() }()
		want := map[string]int{} // row → entries
		var running []string
		for range rapid.IntRange(0, 50).Draw(rt, "steps") {
			if len(running) > 0 && rapid.IntRange(0, 2).Draw(rt, "end") == 0 {
				i := rapid.IntRange(0, len(running)-1).Draw(rt, "which")
				if _, err := l.Append(ctx, Event{Org: "acme", ID: running[i], Body: completed()}); err != nil {
					rt.Fatal(err)
				}
				want[running[i]]++
				running = slices.Delete(running, i, i+1)
				continue
			}
			at := time.UnixMilli(int64(1_700_000_000_000 + rapid.IntRange(0, 60).Draw(rt, "ms")))
			id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String()
			org, v := "acme", VerdictDeny
			if rapid.IntRange(0, 4).Draw(rt, "org") == 0 {
				org = "other"
			} else if rapid.Bool().Draw(rt, "allow") {
				v = VerdictAllow
				running = append(running, id)
			}
			if _, err := l.Append(ctx, Event{Org: org, ID: id, Body: decision(v)}); err != nil {
				rt.Fatal(err)
			}
			if org == "acme" {
				want[id] = 1
			}
		}
		ids := make([]string, 0, len(want))
		for id := range want {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, again := range []bool{false, true} {
			if again {
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				if l, err = Open(o); err != nil {
					rt.Fatal(err)
				}
			}
			for id, n := range want {
				if row, err := l.Get(ctx, "acme", id); err != nil || row.Entries != n {
					rt.Fatalf("row %s: %d entries of %d, %v", id, row.Entries, n, err)
				}
				if _, err := l.Get(ctx, "other", id); abi.CodeOf(err) != abi.CodeNotFound {
					rt.Fatalf("another organisation's row: %v", err)
				}
			}
			for _, oldest := range []bool{true, false} {
				q := Query{Limit: rapid.IntRange(1, 20).Draw(rt, "limit"), Oldest: oldest}
				var got []string
				for pages := 0; ; pages++ {
					page, err := l.Rows(ctx, "acme", q)
					if err != nil || pages > 500 {
						rt.Fatalf("page %d: %v", pages, err)
					}
					for _, r := range page.Rows {
						got = append(got, r.ID)
						if r.Entries != want[r.ID] {
							rt.Fatalf("row %s has %d entries of %d", r.ID, r.Entries, want[r.ID])
						}
					}
					if q.After = page.Next; q.After == "" {
						break
					}
				}
				if !oldest {
					slices.Reverse(got)
				}
				if !slices.Equal(got, ids) {
					rt.Fatalf("oldest=%v: %d rows listed of %d", oldest, len(got), len(ids))
				}
			}
		}
	})
}

// What is in memory does not grow with the log: of many files, two have their rows in the index and a
// few more are kept for those who ask.
func TestIndexIsBounded(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir(), Durability: DurabilityProcess, SegmentBytes: 1})
	const files = 60
	for range files {
		mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
	}
	if n := countRows(t, l, "acme"); n != files {
		t.Fatalf("%d rows", n)
	}
	if len(l.index.sealed) != files-1 || l.index.current.size != 1 || l.index.previous.size != 1 || len(l.index.open) != 0 {
		t.Errorf("%d full files, %d + %d entries, %d open", len(l.index.sealed), l.index.current.size, l.index.previous.size, len(l.index.open))
	}
	if n := len(l.segments.kept); n != keptSegments {
		t.Errorf("%d files are kept for queries", n)
	}
}

func TestNeighbour(t *testing.T) {
	for _, c := range []struct{ at, before, after string }{
		{"01ARZ3NDEKTSV4RRFFQ69G5FA0", "01ARZ3NDEKTSV4RRFFQ69G5F9Z", "01ARZ3NDEKTSV4RRFFQ69G5FA1"},
		{"01ARZ3NDEK0000000000000000", "01ARZ3NDEJZZZZZZZZZZZZZZZZ", "01ARZ3NDEK0000000000000001"},
	} {
		id := ulid.MustParse(c.at)
		if b, a := neighbour(id, true).String(), neighbour(id, false).String(); b != c.before || a != c.after {
			t.Errorf("%s: %s and %s", c.at, b, a)
		}
	}
}

// BenchmarkOpen opens logs of many rows: everything that heads cover is read and hashed.
func BenchmarkOpen(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			if rows > 10_000 && testing.Short() {
				b.Skip("it makes a log of two gigabytes")
			}
			dir := b.TempDir()
			o := Options{Dir: dir, Durability: DurabilityProcess}
			l, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			d, e := pair()
			var first string
			for i := range rows {
				id := NewID()
				if i == 0 {
					first = id
				}
				if err := l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: &d}); err != nil {
					b.Fatal(err)
				}
				if err := l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: &e}); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			before := cpu(b)
			for range b.N {
				if l, err = Open(o); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				start := time.Now()
				if _, err := l.Get(ctx, "acme", first); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/oldest-row")
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
