package servertest_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/abi/tck"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/files"
)

// conforming is the whole server as a host of the conformance kit.
type conforming struct {
	t      *testing.T
	g      *servertest.Gateway
	origin *tck.Origin
	ledger *forgetful
	disk   *disk
}

// conform starts a server that admitted a guest of the kit.
func conform(t *testing.T, guest []byte) *conforming {
	t.Helper()
	h := &conforming{t: t, origin: &tck.Origin{}, ledger: &forgetful{}}
	there := httptest.NewServer(h.origin)
	t.Cleanup(there.Close)
	h.origin.URL = there.URL
	h.g, h.disk = onDisk(t, func(o *server.Options) {
		o.EgressLoopback = true
		o.Ledger = func(l files.Ledger) files.Ledger { h.ledger.Ledger = l; return h.ledger }
	})
	endpoint(h.g, tck.Endpoint, there.URL, nil)
	h.g.Control("PUT", "/v1/secrets/"+tck.Secret, map[string]any{"value": tck.SecretValue, "uses": []map[string]any{
		{"kind": "hmac", "prefix": tck.SecretPrefix, "label": "public"},
	}}, "If-None-Match", "*").Want(200)
	admit(h.g, "tck", guest, []string{"org"}, map[string]any{
		"endpoints": []string{tck.Endpoint}, "secrets": []string{tck.Secret}, "calls": []abi.CapabilityRef{tck.Child},
	})
	return h
}

func (h *conforming) Origin() *tck.Origin { return h.origin }

func (h *conforming) Open(context.Context) (tck.Session, error) {
	return &conformingSession{h, h.g.Open("user:alice", "org", map[string]any{"files": true})}, nil
}

type conformingSession struct {
	h *conforming
	s *servertest.Session
}

// endOf is what a row says of an invocation's end.
type endOf struct {
	Ended *struct {
		Code  abi.Code
		Lines []struct {
			Function string
			Code     abi.Code
		}
		LogBytes int64
	} `json:"ended"`
}

func (c *conformingSession) Invoke(ctx context.Context, input []byte) (*tck.Outcome, error) {
	answered := make(chan servertest.Response, 1)
	go func() { answered <- c.s.Invoke(string(tck.Call), input) }()
	var r servertest.Response
	select {
	case r = <-answered:
	case <-ctx.Done():
		requestCancel(c.h.g, c.s, c.open()).Want(202)
		r = <-answered
	}
	out := &tck.Outcome{Code: r.Code()}
	if r.Status == 200 {
		out.Output, out.Code = r.Body, ""
	}
	id := r.Header.Get("Ecotone-Invocation")
	if id == "" {
		return nil, fmt.Errorf("an answer without an invocation: %s", r.Body)
	}
	var row endOf
	if c.h.g.Control("GET", "/v1/audit/"+id, nil).Want(200).JSON(&row); row.Ended == nil || row.Ended.Code != out.Code {
		return nil, fmt.Errorf("the row says %+v of %d %s", row.Ended, r.Status, r.Body)
	}
	for _, l := range row.Ended.Lines {
		line := tck.Line{Function: l.Function}
		switch info, known := l.Code.Info(); {
		case l.Code == "":
		case known && info.Errno == 0 && l.Function == "capability_invoke": // why the child failed
			line.Errno = abi.ECHILD
		default:
			line.Errno = l.Code.Errno()
		}
		out.Receipt = append(out.Receipt, line)
	}
	out.LogBytes = row.Ended.LogBytes
	if r.Status != 200 {
		var problem struct{ Guest tck.Failure }
		r.JSON(&problem)
		out.Failure = problem.Guest
	}
	return out, nil
}

// open is the invocation that announced something and has not ended.
func (c *conformingSession) open() string {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, r := range c.h.g.Rows("&kind=invocation&capability=" + string(tck.Call)) {
			if r["effects"] != nil && r["ended"] == nil {
				return r["auditId"].(string)
			}
		}
	}
	c.h.t.Fatal("no invocation is running")
	return ""
}

func (c *conformingSession) Disturb(_ context.Context, d tck.Disturbance) error {
	workspace := filepath.Join(c.h.g.Dir, "workspaces", c.s.Workspace)
	switch d {
	case tck.FileRemoved:
		return os.Remove(filepath.Join(workspace, "a"))
	case tck.WorkspaceGone:
		return os.RemoveAll(workspace)
	case tck.LedgerSilent:
		c.h.ledger.broken.Store(true)
		return nil
	case tck.KeysFail:
		values := "kv-meta"
		c.h.disk.only.Store(&values)
		return nil
	}
	return fmt.Errorf("an unknown disturbance: %q", d)
}

func (c *conformingSession) Close(context.Context) error {
	c.h.ledger.broken.Store(false)
	c.h.disk.only.Store(nil)
	c.h.g.Control("DELETE", "/v1/sessions/"+c.s.ID, nil).Want(200)
	return nil
}

var _ tck.Host = (*conforming)(nil)

// Every function of the table and every error number, over the whole server: the conformance kit.
func TestConformance(t *testing.T) {
	t.Parallel()
	h := conform(t, tck.Guest())
	for _, c := range tck.Cases() {
		t.Run(c.ID, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := tck.Check(ctx, h, c); err != nil {
				t.Errorf("%s\n%v", c.About, err)
			}
		})
	}
}

// Each language binding answers as the table says, over the whole server: one case at least per
// function, and every one that needs no raw pointer.
func TestConformanceOfBindings(t *testing.T) {
	t.Parallel()
	for _, language := range tck.Languages() {
		if language == "c" {
			continue // the kit's own guest, which has every case
		}
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			conforms(t, tck.In(language))
		})
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("the Go toolchain takes seconds")
		}
		module, err := build.Guest(t.Context(), "tck")
		if err != nil {
			t.Fatal(err)
		}
		conforms(t, module)
	})
}

func conforms(t *testing.T, guest []byte) {
	h := conform(t, guest)
	for _, c := range tck.Cases() {
		if !c.Portable() {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		if err := tck.Check(ctx, h, c); err != nil {
			t.Errorf("%s: %s\n%v", c.ID, c.About, err)
		}
		cancel()
	}
}

// A guest that does not do what it is told does not pass.
func TestConformanceIsNotGivenAway(t *testing.T) {
	t.Parallel()
	h := conform(t, tck.Guest())
	c, _ := tck.Example("kv_get")
	c.Runs[0].Steps[0].Args = []any{"kv_get/a", "42"}
	if err := tck.Check(t.Context(), h, c); err == nil {
		t.Error("another value passes for the one that was put")
	}
}
