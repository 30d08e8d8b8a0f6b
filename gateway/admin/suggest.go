package admin

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/usage"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// maxUsageRows bounds the rows that one suggestion is found from.
const maxUsageRows = 20_000

// suggestGrants finds the smallest install grants and grants with which what the newest version of a biome did in trusted-dev,
// where they are waived, could be done in another environment. It changes nothing.
func (s *Server) suggestGrants(c *call) (*reply, error) {
	if err := policy.Allowed(c.principal, policy.OpReadAudit, c.org); err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	in := abi.EnvironmentRef(q.Get("environment"))
	snapshot := s.o.Policy.Snapshot()
	if e := snapshot.EnvironmentIn(c.org, in); e == nil || e.Waives {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "environment must name one in which grants are asked for").At("environment").
			WithHint("as environment:project")
	}
	var since time.Time
	if v := q.Get("since"); v != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, v); err != nil {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "since must be a time as 2026-01-02T15:04:05Z").At("since")
		}
	}
	org := organisationOf{snapshot.Orgs.At(c.org)}
	name := c.r.PathValue("name")
	biome := org.biome(name)
	if biome == nil {
		return nil, abi.Errorf(abi.CodeNotFound, "there is no biome %s", abi.Quote(name))
	}
	rows, whole, err := s.developmentRows(c, since)
	if err != nil {
		return nil, err
	}
	out := usage.Find(rows, name, biome.Newest.Digest, in, org)
	out.Incomplete = out.Incomplete || !whole
	return ok(out, nil)
}

// developmentRows are the invocations that were allowed in trusted-dev, the newest first; whole is that there are no more.
func (s *Server) developmentRows(c *call, since time.Time) (rows []audit.Row, whole bool, err error) {
	waives := abi.MakeEnvironmentRef(environment.TrustedDev)
	q := audit.Query{Kind: audit.RowInvocation, Verdict: audit.VerdictAllow, Limit: audit.MaxPage}
	for len(rows) < maxUsageRows {
		page, err := s.o.Audit.Rows(c.ctx, c.org, q)
		if err != nil {
			return nil, false, err
		}
		for _, r := range page.Rows {
			if r.Time.Before(since) {
				return rows, true, nil
			}
			if r.Decision != nil && r.Decision.Environment == waives {
				rows = append(rows, r)
			}
		}
		if page.Next == "" {
			return rows, true, nil
		}
		q.After = page.Next
	}
	return rows, false, nil
}

// organisationOf implements [usage.Known].
type organisationOf struct{ org *gate.Org }

func (o organisationOf) biome(name string) *gate.Biome {
	if o.org == nil {
		return nil
	}
	return o.org.Biomes.At(name)
}

func (o organisationOf) Own(biome string) bool { return o.biome(biome) != nil }

func (o organisationOf) Endpoints(biome, digest string) []*egress.Endpoint {
	if b := o.biome(biome); b != nil {
		for _, a := range []*gate.Admission{b.Newest, b.Installed} {
			if a != nil && a.Digest == digest {
				return a.Declared.Endpoints
			}
		}
	}
	return nil
}
