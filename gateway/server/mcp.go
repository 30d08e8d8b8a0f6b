package server

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/mcp"
	"github.com/ecotone-dev/ecotone/host/network"
)

// openMCP makes the face for agents, on the listener that it has of its own or, in development and without
// one, beside the control plane. It returns what that listener serves.
func (s *Server) openMCP(control http.Handler) (http.Handler, error) {
	door := s.doors[doorMCP]
	if door == nil {
		if !s.o.Dev {
			return control, nil
		}
		door = s.doors[doorAdmin]
	}
	key, err := loadKey(filepath.Join(s.o.Dir, "keys", "mcp"))
	if err != nil {
		return nil, err
	}
	face := mcp.New(mcp.Options{
		Pipeline: s.pipeline, Guard: guard.New(door.Addr(), s.o.HostNames, network.Nonce()), NonceHeader: network.NonceHeader,
		Key: key, MaxInput: s.largestInput, Log: s.o.Log,
	})
	if s.doors[doorMCP] == nil {
		return mcp.Beside(face, control), nil
	}
	s.mcp = mcp.HTTPServer(face, s.o.Log)
	return control, nil
}

// MCP is the endpoint of the face for agents in its direct shape, or "" when there is none.
func (s *Server) MCP() string {
	switch {
	case s.doors[doorMCP] != nil:
		return s.doors[doorMCP].URL() + mcp.PathDirect
	case s.o.Dev:
		return s.doors[doorAdmin].URL() + mcp.PathDirect
	}
	return ""
}

// closeMCP closes the face. No invocation runs any more: what is still there after ctx are connections on
// which nothing was asked.
func (s *Server) closeMCP(ctx context.Context) error {
	if s.mcp == nil || s.mcp.Shutdown(ctx) == nil {
		return nil
	}
	return s.mcp.Close()
}
