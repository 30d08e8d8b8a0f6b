package server

import "github.com/ecotone-dev/ecotone/gateway/invoke"

// Pipeline is what the data plane hands requests to.
func (s *Server) Pipeline() *invoke.Pipeline { return s.pipeline }
