package server

// CloseStore closes the store below a running server.
func (s *Server) CloseStore() error { return s.store.Close() }
