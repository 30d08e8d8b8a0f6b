package crashtest

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// The kernel refuses to let any file of the process grow past what the log's largest file has now:
// writes fail in the middle, as on a disk with bad blocks. The store's files have their final
// size from the start, so that nothing else fails.
func init() {
	faults["writes fail"] = func(w *world, p *process) func() {
		files, err := filepath.Glob(filepath.Join(audit.Dir(w.dir), "*"))
		if err != nil {
			w.t.Error(err)
		}
		var most int64
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				most = max(most, info.Size())
			}
		}
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(most) + 1000, Max: unix.RLIM_INFINITY}, nil); err != nil {
			w.t.Error(err)
		}
		return func() {} // the next process has no limit
	}
}
