package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ecotone-dev/ecotone/gateway/logs"
	"github.com/ecotone-dev/ecotone/gateway/server"
)

// ServeCmd runs the gateway.
type ServeCmd struct {
	Settings
}

// Run serves until the context ends.
func (c *ServeCmd) Run(e *Env) error {
	// Libraries write what an origin or a client sent into the standard logger, quoted. None of it
	// is ours to keep: it may hold what somebody else wanted kept secret (PF-F5).
	log.SetOutput(io.Discard)
	if err := c.check(); err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(c.level())
	journal := logs.New(e.stderr, c.LogFormat, level)
	o, err := c.options(journal)
	if err != nil {
		return err
	}
	s, err := server.Open(e.ctx, o)
	if err != nil {
		return err
	}
	defer onHangup(func() { c.reload(e, s, level, journal) })()
	return s.Run(e.ctx, e.stdout)
}

// onHangup calls f for each SIGHUP, until the function it returns is called.
func onHangup(f func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { signal.Stop(signals); cancel(); <-ended }
}

// reload reads flags, variables and the file again and takes what may change in a running server. Of the rest
// it says that it takes a restart. What does not read changes nothing.
func (c *ServeCmd) reload(e *Env, s *server.Server, level *slog.LevelVar, journal *slog.Logger) {
	again, _, err := parse(e.args, io.Discard, io.Discard)
	if err == nil {
		err = again.Serve.check()
	}
	if err != nil {
		journal.Error("the settings are not good, and stay as they were", "error", err)
		return
	}
	var taken, left []string
	now := again.Serve.table()
	for i, was := range c.table() {
		switch {
		case was.text() == now[i].text():
		case was.Reload == "value":
			taken = append(taken, was.Key)
		default:
			left = append(left, was.Key)
		}
	}
	if len(left) > 0 {
		journal.Warn("these settings changed and take a restart", "settings", strings.Join(left, " "))
	}
	c.LogLevel = again.Serve.LogLevel
	level.Set(c.level())
	if err := s.Reload(); err != nil {
		journal.Error("the TLS certificate stays as it was", "error", err)
		return
	}
	journal.Info("the settings were read again", "changed", strings.Join(taken, " "))
}
