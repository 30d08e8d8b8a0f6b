package audit

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// lossyDisk is a disk under a machine that loses power. What was written is there for the process;
// what was not synchronised is on the disk or not, page by page and in any order. It stops at an
// operation that nobody chose.
type lossyDisk struct {
	mu      sync.Mutex
	left    int               // operations until the power goes
	durable map[string][]byte // by path: what a synchronisation left
	dirty   map[string]bool
}

func newLossyDisk(operations int) *lossyDisk {
	return &lossyDisk{left: operations, durable: map[string][]byte{}, dirty: map[string]bool{}}
}

// operate runs one operation, if there is still power. The last one happens for the process, but nobody
// hears of it.
func (d *lossyDisk) operate(do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left <= 0 {
		return errBroken
	}
	err := do()
	if d.left--; d.left == 0 {
		return errBroken
	}
	return err
}

func (d *lossyDisk) open(path string, flag int) (f file, err error) {
	err = d.operate(func() error {
		if _, known := d.durable[path]; !known {
			d.durable[path], _ = os.ReadFile(path)
		}
		f, err = openFile(path, flag)
		return err
	})
	if err != nil && f != nil {
		return nil, err
	}
	return &lossyFile{f, path, d}, err
}

type lossyFile struct {
	file
	path string
	d    *lossyDisk
}

func (f *lossyFile) Write(p []byte) (n int, err error) {
	err = f.d.operate(func() error {
		f.d.dirty[f.path] = true
		n, err = f.file.Write(p)
		return err
	})
	return n, err
}

func (f *lossyFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.d.operate(func() error {
		f.d.dirty[f.path] = true
		n, err = f.file.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *lossyFile) Truncate(size int64) error {
	return f.d.operate(func() error {
		f.d.dirty[f.path] = true
		return f.file.Truncate(size)
	})
}

// Sync that loses power half way has made nothing sure.
func (f *lossyFile) Sync() error {
	return f.d.operate(func() error {
		if f.d.left == 1 {
			return nil
		}
		data, err := os.ReadFile(f.path)
		f.d.durable[f.path], f.d.dirty[f.path] = data, false
		return err
	})
}

// cut takes the power away and leaves on the file system what the disk kept.
func (d *lossyDisk) cut(r *rand.Rand, page int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = 0
	for _, path := range slices.Sorted(maps.Keys(d.durable)) {
		if !d.dirty[path] {
			continue
		}
		now, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		was := d.durable[path]
		low, high := min(len(now), len(was)), max(len(now), len(was))
		size := low + r.IntN(high-low+1)
		if r.IntN(3) == 0 {
			size = len(now)
		}
		out := make([]byte, size)
		for at := 0; at < size; at += page {
			from := was
			if r.IntN(2) == 0 {
				from = now
			}
			if at < len(from) {
				copy(out[at:min(at+page, size)], from[at:])
			}
		}
		if err := os.WriteFile(path, out, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Promise 4, S8: the power goes at any operation, and of what was not synchronised any pages are on
// the disk. In power mode every acknowledged entry is there afterwards; in either mode what a
// head that was handed out covers is there, the log opens, verifies before and after, and a row
// has no more than was appended to it.
func TestPowerLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, remove := quickDir(rt)
		defer remove()
		mode := rapid.SampledFrom([]Durability{DurabilityPower, DurabilityProcess}).Draw(rt, "mode")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "pages"), 0))
		page := rapid.SampledFrom([]int{sectorBytes, 4096}).Draw(rt, "page")

		var mu sync.Mutex
		acked, written := map[string]int{}, map[string]int{} // row → entries
		var heads [][]byte
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			d := newLossyDisk(rapid.IntRange(1, 120).Draw(rt, "operations"))
			l, err := Open(Options{
				Dir: dir, Durability: mode, open: d.open, SegmentBytes: rapid.SampledFrom([]int64{1, 4 << 10, 1 << 20}).Draw(rt, "segment"),
			})
			if err == nil {
				turns := rapid.IntRange(0, 12).Draw(rt, "turns")
				callers := rapid.IntRange(1, 4).Draw(rt, "callers")
				coverEvery := rapid.IntRange(1, 6).Draw(rt, "a head every")
				for turn := range turns {
					var wg sync.WaitGroup
					for range callers {
						wg.Go(func() {
							id := NewID()
							d, e := decision(VerdictAllow), completed()
							mu.Lock()
							written[id] = 2
							mu.Unlock()
							if l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: &d}) != nil {
								return
							}
							if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: &e}); err == nil {
								mu.Lock()
								acked[id] = 2
								mu.Unlock()
							}
						})
					}
					wg.Wait()
					if turn%coverEvery == 0 {
						heads = append(heads, l.Head())
					}
				}
				if err := d.cut(r, page); err != nil {
					rt.Fatal(err)
				}
				l.Close()
			} else if err := d.cut(r, page); err != nil { // it died while opening
				rt.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(Dir(dir), pubName)); err != nil {
				continue // it died while the log was made: there is nothing to verify yet
			}
			if rep, err := Verify(Dir(dir), VerifyOptions{}); err != nil || !rep.OK {
				rt.Fatalf("what the disk kept does not verify: %+v %v", rep.Problem, err)
			}
		}
		l, err := Open(Options{Dir: dir, Durability: mode})
		if err != nil {
			rt.Fatalf("last Open: %v %v", err, abi.AsError(err).Cause)
		}
		defer l.Close()
		for id, most := range written {
			row, err := l.Get(ctx, "acme", id)
			if abi.CodeOf(err) == abi.CodeNotFound {
				row.Entries = 0
			} else if err != nil {
				rt.Fatalf("row %s: %v", id, err)
			}
			if row.Entries > most || (mode == DurabilityPower && row.Entries < acked[id]) {
				rt.Fatalf("row %s has %d entries; %d were acknowledged of %d", id, row.Entries, acked[id], most)
			}
		}
		if _, err := l.Recover(ctx); err != nil {
			rt.Fatalf("Recover: %v", err)
		}
		for _, h := range append(heads, l.Head()) {
			if r, err := Verify(Dir(dir), VerifyOptions{Head: h}); err != nil || !r.OK {
				rt.Fatalf("Verify against an older head: %+v %v", r.Problem, err)
			}
		}
	})
}
