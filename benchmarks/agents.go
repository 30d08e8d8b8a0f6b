package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const (
	groupAgents = "Agents, over MCP, with 100 biomes"
	agentBiomes = 100
)

// asking is one request of an agent's, over and over on one connection.
type asking struct {
	name string
	path string
	body string
	p50  []float64 // of each round, in nanoseconds
}

// measureAgents measures how long an agent waits for what it may do, where there is much of it: for the list in
// either shape, for a search, and for a call, each judged anew with every request.
func measureAgents(ctx context.Context, b *bench) error {
	g, err := startGateway(ctx, filepath.Join(b.dir, "agents"))
	if err != nil {
		return err
	}
	defer func() { _ = g.stop() }()
	group, uploading := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for n := range agentBiomes {
		group.Go(func() error {
			biome, ref := numbered(n)
			if err := g.install(uploading, "default", biome, peer.Echo(biome, ref, 1<<10)); err != nil {
				return err
			}
			return g.grant(uploading, "default", "user:bench", ref)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	token, err := g.open(ctx, "default", "user:bench")
	if err != nil {
		return err
	}
	_, ref := numbered(7)
	call := func(name, arguments string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	all := []*asking{
		{name: "p50 of a list: one tool for each of 100 capabilities", path: "/mcp", body: list},
		{name: "p50 of a list: the six tools", path: "/mcp/meta", body: list},
		{name: "p50 of a search among 100 capabilities", path: "/mcp/meta", body: call("search", `{"query":"echo"}`)},
		{name: "p50 of a description", path: "/mcp/meta", body: call("describe", fmt.Sprintf(`{"refs":[%q]}`, ref))},
		{name: "p50 of a call by the six tools", path: "/mcp/meta", body: call("invoke", fmt.Sprintf(`{"ref":%q,"input":{}}`, ref))},
	}
	for round, begin := 0, time.Now(); round < pick(b, 3, 9) && fits(ctx, round, begin); round++ {
		for _, a := range all {
			var took []float64
			for end := time.Now().Add(pick(b, 150*time.Millisecond, time.Second)); time.Now().Before(end) || len(took) == 0; {
				d, err := a.once(ctx, "http://"+g.MCP+a.path, token)
				if err != nil {
					return fmt.Errorf("%s: %w", a.name, err)
				}
				took = append(took, float64(d))
			}
			a.p50 = append(a.p50, median(took))
		}
	}
	for _, a := range all {
		b.Add(report.Measured(groupAgents, a.name, "ns", a.p50).Noting("one client, on one connection"))
	}
	return nil
}

// once sends the request and reads the answer, which has to be a result.
func (a *asking) once(ctx context.Context, endpoint, token string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(a.body))
	if err != nil {
		return 0, err
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25",
	} {
		req.Header.Set(k, v)
	}
	begin := time.Now()
	res, err := control.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	took := time.Since(begin)
	if err == nil && (!bytes.Contains(raw, []byte(`"result"`)) || bytes.Contains(raw, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s %.200s", res.Status, raw)
	}
	return took, err
}
