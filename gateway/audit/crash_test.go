package audit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// Model: whatever is acknowledged before a crash at any byte is there afterwards, in order, and
// verifies against every head taken before; what was not acknowledged is there whole or not at all.
func TestCrashModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, remove := quickDir(rt)
		defer remove()
		acked := map[string]int{}   // row → acknowledged entries
		written := map[string]int{} // row → appended entries, acknowledged or not
		var heads [][]byte
		mode := rapid.SampledFrom([]Durability{DurabilityPower, DurabilityProcess}).Draw(rt, "mode")
		rounds := rapid.IntRange(1, 4).Draw(rt, "rounds")
		for range rounds {
			d := &brokenDisk{budget: rapid.Int64Range(0, 12<<10).Draw(rt, "crash after bytes")}
			l, err := Open(Options{Dir: dir, Durability: mode, open: d.open, SegmentBytes: rapid.SampledFrom([]int64{1, 2 << 10, 1 << 20}).Draw(rt, "segment")})
			if err != nil {
				if !d.broken {
					rt.Fatalf("Open: %v", err)
				}
				continue // it died while opening
			}
			for i := range rapid.IntRange(0, 12).Draw(rt, "rows") {
				id := NewID()
				bodies := []Body{decision(VerdictAllow), Started{}, completed()}
				if i%3 == 0 {
					bodies = []Body{decision(VerdictDeny)}
				}
				for _, b := range bodies {
					written[id]++
					ev := Event{Org: "acme", ID: id, Body: b}
					if rapid.Bool().Draw(rt, "async") {
						if l.AppendAsync(ctx, ev) != nil {
							break
						}
						continue
					}
					if _, err := l.Append(ctx, ev); err != nil {
						break
					}
					acked[id] = written[id]
					if rapid.Bool().Draw(rt, "head") {
						heads = append(heads, l.Head())
					}
				}
			}
			l.Close()
		}
		l, err := Open(Options{Dir: dir})
		if err != nil {
			rt.Fatalf("last Open: %v", err)
		}
		defer l.Close()
		for id, n := range written {
			row, err := l.Get(ctx, "acme", id)
			if abi.CodeOf(err) == abi.CodeNotFound {
				row.Entries = 0
			} else if err != nil {
				rt.Fatalf("row %s: %v", id, err)
			}
			if row.Entries < acked[id] || row.Entries > n {
				rt.Fatalf("row %s has %d entries; %d were acknowledged of %d", id, row.Entries, acked[id], n)
			}
		}
		if _, err := l.Recover(ctx); err != nil {
			rt.Fatalf("Recover: %v", err)
		}
		for _, h := range heads {
			if r, err := Verify(Dir(dir), VerifyOptions{Head: h}); err != nil || !r.OK {
				rt.Fatalf("Verify against an older head: %+v %v", r.Problem, err)
			}
		}
	})
}

const (
	childEnv = "ECOTONE_AUDIT_CHILD"
	modeEnv  = "ECOTONE_AUDIT_DURABILITY"
)

// childMain is the process that gets killed: it appends without end and says which rows and heads it
// was given an answer for.
func childMain(dir string) {
	mode, err := ParseDurability(os.Getenv(modeEnv))
	if err != nil {
		panic(err)
	}
	l, err := Open(Options{Dir: dir, Durability: mode, SegmentBytes: 32 << 10})
	if err == nil {
		_, err = l.Recover(ctx)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(word, id string) {
		mu.Lock()
		defer mu.Unlock()
		os.Stdout.WriteString(word + " " + id + "\n") // unbuffered: said means answered
	}
	for range 8 {
		go func() {
			for {
				id := NewID()
				for _, b := range []Body{decision(VerdictAllow), Started{}, Effect{Line: 1, Function: "http_fetch", Target: "x"}} {
					if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: b}); err != nil {
						say("error", err.Error())
					}
				}
				say("effect", id)
				l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: EffectClosed{Line: 1}})
				if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: completed()}); err != nil {
					say("error", err.Error())
				}
				say("ended", id)
			}
		}()
	}
	time.Sleep(time.Minute)
	os.Exit(1)
}

// S8, X48, promise 4: after kill -9 under load, in either mode, every effect that could have happened has
// its row, every answered invocation its outcome, and the log verifies against a head from before.
func TestKill(t *testing.T) {
	for _, mode := range []Durability{DurabilityPower, DurabilityProcess} {
		t.Run(mode.String(), func(t *testing.T) { testKill(t, mode) })
	}
}

func testKill(t *testing.T, mode Durability) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	effects, ended := map[string]bool{}, map[string]bool{}
	var kept []byte
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childEnv+"="+dir, modeEnv+"="+mode.String())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			word, id, _ := strings.Cut(lines.Text(), " ")
			switch word {
			case "effect":
				effects[id] = true
			case "ended":
				ended[id] = true
			default:
				t.Errorf("child: %s", lines.Text())
			}
			if n == 37+61*round { // wherever it is by then
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		mustVerify(t, dir, kept)

		l := mustOpen(t, Options{Dir: dir, Durability: mode})
		if _, err := l.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		for id := range effects {
			row, err := l.Get(ctx, "acme", id)
			if err != nil {
				t.Fatalf("effect without a row: %v", err)
			}
			if len(row.Effects) != 1 || row.Ended == nil {
				t.Fatalf("row of an effect: %+v", row)
			}
			if ended[id] && row.Ended.Outcome != OutcomeCompleted {
				t.Fatalf("answered, and its outcome is %s", row.Ended.Outcome)
			}
			if row.Ended.Outcome == OutcomeInterrupted && row.Effects[0].Outcome == EffectOpen {
				t.Fatalf("an effect is neither done nor unknown: %+v", row.Effects[0])
			}
		}
		kept = l.Head()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		mustVerify(t, dir, kept)
	}
	if len(ended) == 0 {
		t.Error("the child never got an answer")
	}
}

// A tail that no head covers is cut whatever it holds, up to one group; more than that was not left
// by a crash. A lost write that became zeros counts as not written.
func TestTails(t *testing.T) {
	build := func(t *testing.T) (dir, entries, heads, id string) {
		dir = t.TempDir()
		l := mustOpen(t, Options{Dir: dir})
		id = NewID()
		mustAppend(t, l, "acme", id, decision(VerdictDeny))
		l.Close()
		return dir, filepath.Join(Dir(dir), fileName(0, entriesExt)), filepath.Join(Dir(dir), fileName(0, headsExt)), id
	}
	grow := func(t *testing.T, path string, tail []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(tail)
		f.Close()
	}
	for name, c := range map[string]struct {
		entries, heads []byte
		refused        bool
	}{
		"garbage entries":  {entries: []byte("not a frame at all")},
		"zero entries":     {entries: make([]byte, 4096)},
		"zero heads":       {heads: make([]byte, 4096)},
		"begun head":       {heads: []byte(originPrefix)},
		"garbage heads":    {heads: []byte("not a head"), refused: true},
		"more than may be": {entries: make([]byte, maxUncovered+1), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, entries, heads, id := build(t)
			grow(t, entries, c.entries)
			grow(t, heads, c.heads)
			l, err := Open(Options{Dir: dir})
			if c.refused {
				if abi.CodeOf(err) != abi.CodeAuditUnavailable {
					t.Fatalf("Open: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if _, err := l.Recover(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Get(ctx, "acme", id); err != nil {
				t.Errorf("the row before the tail: %v", err)
			}
			page, err := l.Rows(ctx, SystemOrg, Query{})
			if err != nil || len(page.Rows) != 1 || page.Rows[0].System.CutBytes != int64(len(c.entries)+len(c.heads)) {
				t.Errorf("recovery row = %+v, %v", page.Rows, err)
			}
			if r := mustVerify(t, dir, nil); r.Tail != 0 {
				t.Errorf("%d bytes of tail are left", r.Tail)
			}
		})
	}
	t.Run("log removed", func(t *testing.T) {
		dir, entries, heads, _ := build(t)
		os.Remove(entries)
		os.Remove(heads)
		if _, err := Open(Options{Dir: dir}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
			t.Errorf("Open made a new log in the place of a removed one: %v", err)
		}
	})
	t.Run("signing key replaced", func(t *testing.T) {
		dir, _, _, _ := build(t)
		os.Remove(filepath.Join(dir, "keys", signingName))
		if _, err := Open(Options{Dir: dir}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
			t.Errorf("Open signed with a new key: %v", err)
		}
	})
}
