package admin

import "net/http"

func (s *Server) getDocument(*call) (*reply, error) {
	return &reply{status: http.StatusOK, body: rawBody{"application/json", s.doc()}}, nil
}
