package server

import "github.com/ecotone-dev/ecotone/gateway/invoke"

// CloseStore closes the store below a running server.
func (s *Server) CloseStore() error { return s.store.Close() }

// Pipeline is what the data plane hands requests to.
func (s *Server) Pipeline() *invoke.Pipeline { return s.pipeline }
