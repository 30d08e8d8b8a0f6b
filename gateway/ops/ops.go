// Package ops is the third listener: whether the process lives, whether it can serve, and
// its counters.
//
// It promises that /livez depends on nothing, and that /readyz is green only while every part
// that an invocation needs answers (M58). It needs no
// token and says nothing of any tenant.
package ops

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// Check is one part that must be ready. Probe returns nil when it is; its error text is logged,
// not shown.
type Check struct {
	Name  string
	Probe func(ctx context.Context) error
}

// probeTimeout bounds each check, so that a hanging part is a red one.
const probeTimeout = 2 * time.Second

// Handler serves the three paths.
func Handler(g *guard.Guard, nonceHeader string, checks []Check, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]string{"status": "live"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, body := ready(r.Context(), checks)
		write(w, status, body)
	})
	mux.Handle("GET /metrics", metrics)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(guard.FromHTTP(r, nonceHeader)); err != nil {
			d := problem.From(err, "")
			w.Header().Set("Content-Type", problem.ContentType)
			w.WriteHeader(d.Status)
			_, _ = w.Write(d.Encode())
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
	Code   abi.Code          `json:"code,omitempty"`
}

func ready(ctx context.Context, checks []Check) (int, readiness) {
	out := readiness{Status: "ready", Checks: map[string]string{}}
	results := make([]error, len(checks))
	done := make(chan int, len(checks))
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for i, c := range checks {
		go func() {
			results[i] = c.Probe(ctx)
			done <- i
		}()
	}
	answered := make([]bool, len(checks))
	for range checks {
		select {
		case i := <-done:
			answered[i] = true
		case <-ctx.Done():
		}
	}
	for i, c := range checks {
		switch {
		case !answered[i]:
			out.Checks[c.Name] = "no answer"
		case results[i] != nil:
			out.Checks[c.Name] = string(abi.CodeOf(results[i]))
		default:
			out.Checks[c.Name] = "ok"
			continue
		}
		out.Status, out.Code = "not ready", abi.CodeNotReady
	}
	if out.Status != "ready" {
		return http.StatusServiceUnavailable, out
	}
	return http.StatusOK, out
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
