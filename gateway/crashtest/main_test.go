package crashtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/compile"
)

// Variables of the process that serves.
const (
	childEnv = "ECOTONE_CRASH_CHILD" // its data directory
	diskEnv  = "ECOTONE_CRASH_DISK"  // a file that is there once the disk is full
	modeEnv  = "ECOTONE_CRASH_DURABILITY"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	if dir := os.Getenv(childEnv); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve is what `ecotone serve --egress-loopback` does, on free ports. It ends with its standard
// input, which the test holds: however the test ends, no server stays behind.
func serve(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	durability, err := audit.ParseDurability(os.Getenv(modeEnv))
	if err != nil {
		return err
	}
	if err := os.Setenv("ECOTONE_VERIFY", "all"); err != nil {
		return err
	}
	s, err := server.Open(ctx, server.Options{
		Dir: filepath.Clean(dir), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		EgressLoopback: true, SubjectRate: rate.MaxPerHour, ClientRate: rate.MaxPerHour, Limits: abi.DefaultLimits(), Durability: durability, DrainTimeout: 10 * time.Second,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)), DiskFree: diskFree(os.Getenv(diskEnv)),
		Store: func(s store.Store) store.Store { return committing{s, between(dir), new(atomic.Int64)} },
	})
	if err != nil {
		return err
	}
	return s.Run(ctx, os.Stdout)
}

// diskFree is a disk with room, until full is there. A real disk would be full for the tests that
// run beside this one too.
func diskFree(full string) func(string) (uint64, error) {
	if full == "" {
		return nil
	}
	return func(string) (uint64, error) {
		if _, err := os.Stat(full); err == nil {
			return uint64(abi.LimitDiskReserve.Info().Default) - 1, nil
		}
		return 1 << 40, nil
	}
}

// between is the file of a data directory that, while it is there, has the process end when a
// transaction is durable and nobody knows it yet. With a number in it the process ends at that point of
// those counted since: right before each transaction, and right after it.
func between(dir string) string { return filepath.Clean(dir) + ".between" }

// committing is a store whose process may be killed around a commit.
type committing struct {
	store.Store
	kill   string
	points *atomic.Int64
}

// Update implements [store.Store].
func (c committing) Update(ctx context.Context, fn func(store.Tx) error) error {
	c.point(false)
	err := c.Store.Update(ctx, fn)
	c.point(err == nil)
	return err
}

// point is one at which the process may end.
func (c committing) point(durable bool) {
	raw, err := os.ReadFile(c.kill)
	if err != nil {
		return
	}
	if at, err := strconv.ParseInt(string(raw), 10, 64); err == nil && c.points.Add(1) == at || len(raw) == 0 && durable {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
