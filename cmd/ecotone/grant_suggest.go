package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/usage"
)

// GrantSuggestCmd suggests.
type GrantSuggestCmd struct {
	Biome       string        `arg:"" help:"Name of the biome."`
	Environment string        `help:"Where it is to be used." default:"project" placeholder:"SLUG"`
	Since       time.Duration `help:"From what was done since this long ago only." placeholder:"DURATION"`
}

// Run prints the commands that make the installs and grants. It makes none of them.
func (c *GrantSuggestCmd) Run(e *Env) error {
	q := url.Values{"environment": {string(abi.MakeEnvironmentRef(c.Environment))}}
	if c.Since > 0 {
		q.Set("since", time.Now().Add(-c.Since).UTC().Format(time.RFC3339))
	}
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/biomes/"+url.PathEscape(c.Biome)+"/suggested-grants"+Page{}.query(e.conn.Org, q), nil)
	if err != nil {
		return err
	}
	return e.show(res.body, func(w io.Writer, body []byte) error {
		var out usage.Suggested
		if err := json.Unmarshal(body, &out); err != nil {
			return fmt.Errorf("the answer does not decode: %w", err)
		}
		return suggestedCommands(w, &out)
	})
}

func suggestedCommands(w io.Writer, s *usage.Suggested) error {
	fmt.Fprintf(w, "# what %s (%s) did in trusted-dev, in %d invocations\n", s.Biome, s.Digest, s.Invocations)
	if s.Incomplete {
		fmt.Fprintln(w, "# there was more than was looked at")
	}
	for _, i := range s.Installs {
		line := "ecotone biome install " + i.Biome + flags("--digest", i.Digest)
		for _, env := range i.Environments {
			line += flags("--environment", env.Slug())
		}
		for _, ref := range i.Calls {
			line += flags("--call", string(ref))
		}
		fmt.Fprintln(w, line+flags("--endpoint", i.Endpoints...)+flags("--secret", i.Secrets...))
	}
	for _, g := range s.Grants {
		if _, err := fmt.Fprintf(w, "ecotone grant create %s %s %s%s\n", g.Subject, g.Capability, g.Environment.Slug(), flags("--glob", g.Globs...)); err != nil {
			return err
		}
	}
	return nil
}
