package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressEvery is how often a client that asks for progress is told that its call goes on.
const progressEvery = time.Second

// progress tells a client that asked for it how long its call goes on, and nothing else: how far a guest is is
// the guest's, and above what the caller may know for all that is known (S6). The result ends it.
func (s *Server) progress(c context.Context, req *sdk.CallToolRequest) (end func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	c, cancel := context.WithCancel(c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(progressEvery)
		defer every.Stop()
		for n := 0; ; n++ {
			// One at once, so that a client knows that it was taken; a client that is gone has none.
			_ = req.Session.NotifyProgress(c, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "seconds that the call goes on"})
			select {
			case <-c.Done():
				return
			case <-every.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}
