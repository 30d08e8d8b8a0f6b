package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/version"
)

// ready is the line that says that the server serves.
type ready struct {
	Event  string `json:"event"`
	Invoke string `json:"invoke"`
	Admin  string `json:"admin"`
	Ops    string `json:"ops"`
	MCP    string `json:"mcp,omitempty"`
	Dev    bool   `json:"dev"`
}

// Run serves until ctx ends, prints the ready line to out when it does, and closes everything.
func (s *Server) Run(ctx context.Context, out io.Writer) error {
	s.closing(s.pipeline.Watch())
	failed := make(chan error, numDoors)
	go func() { failed <- s.data.Serve(s.doors[doorData]) }()
	go func() { failed <- ignoreClosed(s.admin.Serve(s.doors[doorAdmin])) }()
	go func() { failed <- ignoreClosed(s.ops.Serve(s.doors[doorOps])) }()
	if s.mcp != nil {
		go func() { failed <- ignoreClosed(s.mcp.Serve(s.doors[doorMCP])) }()
	}
	line := ready{Event: "ready", MCP: s.MCP(), Dev: s.o.Dev}
	line.Invoke, line.Admin, line.Ops = s.doors[doorData].URL(), s.doors[doorAdmin].URL(), s.doors[doorOps].URL()
	if err := json.NewEncoder(out).Encode(line); err != nil {
		return errors.Join(err, s.stop())
	}
	select {
	case <-ctx.Done():
		return s.stop()
	case err := <-failed:
		return errors.Join(err, s.stop())
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop drains: /readyz goes red, new invocations are refused, running ones end or are told to,
// then the listeners and the parts are closed.
func (s *Server) stop() error {
	s.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.o.DrainTimeout)
	defer cancel()
	err := s.pipeline.Drain(ctx, drainGrace)
	closeCtx, cancelClose := context.WithTimeout(context.Background(), drainGrace)
	defer cancelClose()
	err = errors.Join(err, s.data.Shutdown(closeCtx), s.admin.Shutdown(closeCtx), s.ops.Shutdown(closeCtx), s.closeMCP(closeCtx))
	if _, auditErr := s.audit.Append(context.Background(), audit.Event{Body: audit.System{Event: "stopped", Version: version.Version}}); auditErr != nil {
		err = errors.Join(err, auditErr)
	}
	return errors.Join(err, s.Close())
}
