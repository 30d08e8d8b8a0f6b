package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
)

// Servers run in processes of their own, so that the driver's garbage and goroutines are not
// theirs. A child serves until its standard input ends, and answers each line "stats" or
// "settle" with a [stats] document on its standard output.

// stats is what a child says of itself.
type stats struct {
	CPU         int64  `json:"cpu"` // ns, user and system
	Goroutines  int    `json:"goroutines"`
	Heap        uint64 `json:"heap"` // bytes in use
	Kept        uint64 `json:"kept"` // bytes that Go keeps for its heap, in use or not
	Resident    uint64 `json:"resident"`
	Beside      uint64 `json:"beside"` // resident bytes that are neither Go's heap nor a file's
	Descriptors int    `json:"descriptors"`
	Mappings    int    `json:"mappings"`
	Threads     int    `json:"threads"`
}

func child(kind string, args []string) error {
	signal.Ignore(os.Interrupt) // a terminal's goes to everyone; the parent ends its children in order
	flags := flag.NewFlagSet(kind, flag.ContinueOnError)
	dir := flags.String("dir", "", "data directory")
	mode := flags.String("audit", "", "what an answered invocation survives; \"\" is the default")
	step := flags.String("step", "", "how much is switched on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch kind {
	case "echo":
		return childEcho()
	case "step":
		return childStep(*step, *dir)
	case "gateway":
		return childGateway(*dir, *mode)
	}
	return fmt.Errorf("no such child: %s", kind)
}

// childEcho is the least a fasthttp server can do with a request.
func childEcho() error {
	return serveHandler(func(c *fasthttp.RequestCtx) { c.SetBody(c.PostBody()) })
}

// serveHandler serves until standard input ends.
func serveHandler(h fasthttp.RequestHandler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &fasthttp.Server{NoDefaultServerHeader: true, CloseOnShutdown: true, MaxRequestBodySize: 8 << 20, Handler: h}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(ln) }()
	fmt.Printf("{\"event\":\"ready\",\"invoke\":\"http://%s\"}\n", ln.Addr())
	answer()
	return errors.Join(s.Shutdown(), <-failed)
}

// childGateway is the gateway as it is shipped, in the process of the benchmark's binary.
func childGateway(dir, mode string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := server.Options{
		Dir: dir, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Limits: abi.DefaultLimits(), DrainTimeout: 3 * time.Second,
		SubjectRate: rate.MaxPerHour, ClientRate: rate.MaxPerHour, // counted as ever, and out of the way
		Log: slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if err := setMode(&o, mode); err != nil {
		return err
	}
	s, err := server.Open(ctx, o)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, os.Stdout) }()
	answer()
	cancel()
	return <-done
}

// answer serves standard input until it ends.
func answer() {
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() == "settle" {
			runtime.GC()
			debug.FreeOSMemory()
		}
		_ = out.Encode(self())
	}
}

func self() stats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := stats{
		CPU: int64(processCPU()), Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, Kept: m.HeapSys - m.HeapReleased,
		Descriptors: -1, Mappings: -1, Threads: -1,
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Descriptors = len(fds)
	}
	if all := mappings(); all != nil {
		s.Mappings = len(all)
		s.Beside = beside(all, fmt.Sprintf("%p", new([64]byte)))
	}
	if raw, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "VmRSS":
				s.Resident = kib(value)
			case "Threads":
				s.Threads, _ = strconv.Atoi(strings.TrimSpace(value))
			}
		}
	}
	return s
}
