package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// trialGateway is a development gateway on loopback, in this process and a folder of its own: the real
// one, asked over its sockets.
type trialGateway struct {
	Connection
	ctx    context.Context
	cancel context.CancelFunc
	dir    string
	ended  chan error
	spaces int
}

// openTrial starts one. close ends it and removes what it wrote.
func openTrial(ctx context.Context) (*trialGateway, error) {
	dir, err := os.MkdirTemp("", "ecotone-test-")
	if err != nil {
		return nil, err
	}
	g := &trialGateway{dir: dir, ended: make(chan error, 1)}
	g.ctx, g.cancel = context.WithCancel(ctx)
	log.SetOutput(io.Discard) // as the server does
	const free = "127.0.0.1:0"
	s, err := server.Open(g.ctx, server.Options{
		Dir: filepath.Join(dir, "data"), Dev: true, Listen: free, AdminListen: free, OpsListen: free, Limits: abi.DefaultLimits(),
		SubjectRate: rate.MaxPerHour, ClientRate: rate.MaxPerHour, Durability: audit.DurabilityProcess, DrainTimeout: time.Second,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		g.cancel()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ready := make(chan struct{})
	go func() { g.ended <- s.Run(g.ctx, onWrite(func() { close(ready) })) }()
	select {
	case <-ready:
	case err := <-g.ended:
		g.cancel()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	data, control, _ := s.Addresses()
	g.Connection = Connection{Invoke: "http://" + data, Admin: "http://" + control, TokenFile: filepath.Join(dir, "data", "operator.token"), Org: policy.DefaultOrg}
	return g, nil
}

// onWrite is called with the one line that says that the server serves.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) { f(); return len(p), nil }

func (g *trialGateway) close() error {
	g.cancel()
	return errors.Join(<-g.ended, os.RemoveAll(g.dir))
}

// upload uploads a biome as it is.
func (g *trialGateway) upload(biome wasm.Original) error {
	body, media := biome.Module, "application/wasm"
	if biome.Manifest != nil {
		var err error
		if body, media, err = uploadForm(biome.Module, biome.Manifest); err != nil {
			return err
		}
	}
	_, err := g.call(g.ctx, g.Admin, http.MethodPost, "/v1/biomes", http.Header{"Content-Type": {media}}, body)
	return err
}

// open opens a session with a workspace, in a space that nothing else is in, and returns its token.
func (g *trialGateway) open() (token string, err error) {
	g.spaces++
	id := fmt.Sprintf("test-%d", g.spaces)
	if _, err := g.admin(g.ctx, http.MethodPost, "/v1/spaces", map[string]any{"id": id, "kind": space.Project, "parent": policy.RootSpace}); err != nil {
		return "", err
	}
	res, err := g.admin(g.ctx, http.MethodPost, "/v1/sessions", map[string]any{
		"subject": "user:dev", "space": id, "environment": abi.MakeEnvironmentRef(environment.TrustedDev), "files": true,
	})
	if err != nil {
		return "", err
	}
	var out struct{ Token string }
	return out.Token, errors.Join(json.Unmarshal(res.body, &out))
}

// outcome is what came of an invocation.
type outcome struct {
	Audit    string       `json:"audit,omitempty"`
	Fuel     int64        `json:"fuel"`
	Output   string       `json:"output,omitempty"` // JSON
	Code     string       `json:"code,omitempty"`   // of the failure, the capability's own where it failed by itself
	Detail   string       `json:"detail,omitempty"`
	Refusals []audit.Line `json:"refusals,omitempty"` // host calls that were refused
}

// invoke invokes with a session's token. The error is none of the biome's doing.
func (g *trialGateway) invoke(token string, ref abi.CapabilityRef, input []byte) (*outcome, error) {
	as := g.Connection
	as.Token = token
	res, err := as.call(g.ctx, as.Invoke, http.MethodPost, "/v1/invoke/"+url.PathEscape(string(ref)), http.Header{"Content-Type": {"application/json"}}, input)
	out := &outcome{}
	var no *denied
	switch {
	case asDenied(err, &no):
		var doc problem.Document
		if err := json.Unmarshal(no.raw, &doc); err != nil {
			return nil, err
		}
		out.Audit, out.Code, out.Detail = doc.AuditID, string(doc.Code), doc.Detail
		if doc.Guest != nil {
			out.Code, out.Detail = doc.Guest.Code, doc.Guest.Message
		}
	case err != nil:
		return nil, err
	default:
		out.Audit, out.Output = res.header.Get("Ecotone-Invocation"), string(res.body)
	}
	if res != nil && res.status == http.StatusAccepted { // even in development a capability may want a person's word
		out.Code, out.Detail, out.Output = string(abi.CodeApprovalRequired), "somebody has to approve it", ""
	}
	if out.Audit == "" {
		return out, nil
	}
	_, row, err := auditRow(&Env{ctx: g.ctx, conn: &g.Connection}, out.Audit)
	if err != nil || row.Ended == nil {
		return out, err
	}
	out.Fuel = row.Ended.Fuel
	for _, line := range row.Ended.Lines {
		if info, _ := line.Code.Info(); line.Code != "" && info.Kind == abi.KindPermissionDenied {
			out.Refusals = append(out.Refusals, line)
		}
	}
	return out, nil
}
