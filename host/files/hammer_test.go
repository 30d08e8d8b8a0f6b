package files_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/files"
)

// M4: sessions that count in one file lose no step, while workspaces are closed and opened
// again under them and others search.
func TestNoStepIsLost(t *testing.T) {
	b := newBench(t, files.WithOpenWorkspaces(1))
	const sessions, steps, workspaces = 6, 6, 3
	ids := make([]string, workspaces)
	for i := range ids {
		ids[i] = fmt.Sprint("h", i)
		must(t, b.svc.Ensure(t.Context(), ids[i], abi.Public))
		g := b.guest()
		g.spec.Workspace = ids[i]
		g.ok(g.create("n", "0"))
	}
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			for step := range steps * workspaces {
				g := b.guest(session(fmt.Sprint("s", s)), ceiling(abi.Public))
				g.spec.Workspace = ids[(s+step)%workspaces]
				for {
					n, err := strconv.Atoi(g.read("n").Body)
					if err != nil {
						t.Error(err)
						return
					}
					a := g.write("n", strconv.Itoa(n+1))
					if a.Code == "" {
						break
					}
					if a.Code != abi.CodeVersionMismatch {
						t.Errorf("%s: %s", a.Code, a.Text)
						return
					}
				}
				if a := g.grep(`\d`, "**"); a.Code != "" || a.Meta.Count != 1 {
					t.Errorf("grep: %+v", a)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		g := b.guest()
		g.spec.Workspace = id
		if a := g.read("n"); a.Body != strconv.Itoa(sessions*steps) {
			t.Errorf("%s counted to %s", id, a.Body)
		}
	}
}
