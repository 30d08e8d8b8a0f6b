package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// AuditShowCmd shows.
type AuditShowCmd struct {
	ID string `arg:"" help:"Audit id, which is the invocation's id."`
}

// maxChain bounds how far up a chain of invocations is followed: no environment lets it be longer.
const maxChain = 64

// Run prints one row: as text that says why, with the chain it is part of, or as it is.
func (c *AuditShowCmd) Run(e *Env) error {
	body, row, err := auditRow(e, c.ID)
	if err != nil {
		return err
	}
	if e.json {
		return e.show(body, nil)
	}
	var chain []audit.Row // the outermost first
	for at := row; at.Decision != nil && at.Decision.Parent != "" && len(chain) < maxChain; {
		if _, at, err = auditRow(e, at.Decision.Parent); err != nil {
			return err
		}
		chain = append([]audit.Row{at}, chain...)
	}
	var children []audit.Row
	if row.Kind == audit.RowInvocation {
		res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/audit"+Page{Limit: 200}.query(e.conn.Org, url.Values{"parent": {row.ID}}), nil)
		if err != nil {
			return err
		}
		var page struct {
			Items []audit.Row `json:"items"`
		}
		if err := json.Unmarshal(res.body, &page); err != nil {
			return fmt.Errorf("the answer does not decode: %w", err)
		}
		for i := len(page.Items) - 1; i >= 0; i-- { // as they were made
			children = append(children, page.Items[i])
		}
	}
	return explainRow(e.stdout, row, chain, children)
}

func auditRow(e *Env, id string) (body []byte, row audit.Row, err error) {
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/audit/"+url.PathEscape(id)+e.orgQuery(), nil)
	if err != nil {
		return nil, row, err
	}
	if err := json.Unmarshal(res.body, &row); err != nil {
		return nil, row, fmt.Errorf("the answer does not decode: %w", err)
	}
	return res.body, row, nil
}

// page prints tables under headings; the first error ends it.
type page struct {
	w   io.Writer
	err error
}

func (p *page) table(heading string, rows [][]string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	indent := ""
	if heading != "" {
		fmt.Fprintf(p.w, "\n%s\n", heading)
		indent = "  "
	}
	t := tabwriter.NewWriter(p.w, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, indent+strings.TrimRight(strings.Join(r, "\t"), "\t"))
	}
	p.err = t.Flush()
}

// explainRow prints a row as text: what came of it, who asked for what, every check, what was called and refused, the
// chain above and below, and what would help.
func explainRow(w io.Writer, r audit.Row, chain, children []audit.Row) error {
	p := &page{w: w}
	_, p.err = fmt.Fprintln(w, headline(&r))
	p.table("", facts(&r))
	if d := r.Decision; d != nil {
		var checks [][]string
		for _, c := range d.Checks {
			checks = append(checks, []string{c.Name, c.Verdict, string(c.Code), meaning(c.Code)})
		}
		p.table("checks", checks)
	}
	if r.Ended != nil {
		var lines [][]string
		for _, l := range r.Ended.Lines {
			lines = append(lines, []string{fmt.Sprint(l.Line), l.Function, l.Target, cmp.Or(string(l.Code), "done"), meaning(l.Code)})
		}
		if n := r.Ended.LinesOmitted; n > 0 {
			lines = append(lines, []string{"…", fmt.Sprintf("and %d more", n)})
		}
		p.table("host calls", lines)
	}
	var effects [][]string
	for _, f := range r.Effects {
		effects = append(effects, []string{fmt.Sprint(f.Line), f.Function, f.Target, f.Outcome, string(f.Code)})
	}
	p.table("effects outside", effects)
	var links [][]string
	for _, of := range []struct {
		what string
		rows []audit.Row
	}{{"above", chain}, {"this", []audit.Row{r}}, {"below", children}} {
		for i := range of.rows {
			who, what, _, outcome := summary(&of.rows[i])
			links = append(links, []string{of.what, of.rows[i].ID, who, what, outcome})
		}
	}
	if len(links) > 1 {
		p.table("chain", links)
	}
	var help [][]string
	for _, s := range suggested(&r) {
		user := ""
		if r.Decision.User != nil {
			user = r.Decision.User.Kind + ":" + r.Decision.User.ID
		}
		help = append(help, []string{s.Kind, advice(s, user)})
	}
	p.table("what would help", help)
	return p.err
}

func meaning(c abi.Code) string {
	info, _ := c.Info()
	return info.Meaning
}

// headline is what came of it, in one line.
func headline(r *audit.Row) string {
	at := r.Time.UTC().Format(time.RFC3339Nano)
	switch {
	case r.Withheld:
		return fmt.Sprintf("invocation %s of %s: not for who asks", r.ID, at)
	case r.Decision != nil && r.Decision.Verdict == audit.VerdictNeedsApproval && r.Ended != nil:
		return fmt.Sprintf("invocation %s of %s: approved, %s%s", r.ID, at, r.Ended.Outcome, prefixed(", ", string(r.Ended.Code)))
	case r.Decision != nil && r.Decision.Verdict != audit.VerdictAllow:
		return fmt.Sprintf("invocation %s of %s: %s, %s: %s", r.ID, at, r.Decision.Verdict, r.Decision.Code, meaning(r.Decision.Code))
	case r.Decision != nil && r.Ended == nil:
		return fmt.Sprintf("invocation %s of %s: allowed, and has not ended", r.ID, at)
	case r.Decision != nil && r.Ended.Code != "":
		return fmt.Sprintf("invocation %s of %s: allowed, %s, %s: %s", r.ID, at, r.Ended.Outcome, r.Ended.Code, meaning(r.Ended.Code))
	case r.Decision != nil:
		return fmt.Sprintf("invocation %s of %s: allowed, %s", r.ID, at, r.Ended.Outcome)
	}
	_, what, _, outcome := summary(r)
	return fmt.Sprintf("%s %s of %s: %s, %s", r.Kind, r.ID, at, what, outcome)
}

// facts are who, what, where, and how it went.
func facts(r *audit.Row) (out [][]string) {
	say := func(name, format string, args ...any) {
		out = append(out, []string{name, fmt.Sprintf(format, args...)})
	}
	if d := r.Decision; d != nil {
		who := d.Subject.Kind + ":" + d.Subject.ID
		if d.User != nil {
			who += ", for " + d.User.Kind + ":" + d.User.ID
		}
		say("who", "%s, through %s", who, cmp.Or(d.Origin, d.CallerKind))
		say("what", "%s%s", d.Capability, prefixed(" of the biome ", d.Biome)+prefixed(", digest ", d.Digest))
		say("where", "%s, space %s, session %s", d.Environment, d.Space, d.Session)
		say("labels", "starts at %s, ceiling %s, cleared for %s", d.Label, d.Ceiling, d.Clearance)
		say("policy", "generation %d%s, reach %s", d.Generation, prefixed(", grants ", strings.Join(d.Grants, " ")), cmp.Or(d.ReachCheck, "not judged"))
	}
	if e := r.Ended; e != nil {
		say("ended", "label %s, %d bytes out, released %t, %d host calls, fuel %d, %d ms", e.Label, e.OutputBytes, e.Released, e.HostCalls, e.Fuel, e.DurationMS)
	}
	if a := r.Admin; a != nil {
		say("who", "%s%s", a.Actor, prefixed(", ", a.Role))
		say("what", "%s %s%s", a.ObjectKind, a.Object, prefixed(", fields ", strings.Join(a.Fields, " ")))
	}
	if f := r.Refused; f != nil {
		say("where", "%s %s at %s%s", f.Method, f.Route, f.Listener, prefixed(", from ", f.Remote))
		say("why", "%s%s", meaning(f.Code), prefixed(" ", f.Detail))
	}
	return out
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func suggested(r *audit.Row) (out []audit.Suggestion) {
	if r.Decision != nil {
		out = append(out, r.Decision.Suggestions...)
	}
	if r.Ended != nil {
		out = append(out, r.Ended.Suggestions...)
	}
	return out
}

// advice says a suggestion in words: the command that follows it, where there is one. An agent's session names its user.
func advice(s audit.Suggestion, user string) string {
	open := "ecotone session open " + s.Subject + flags("--user", user)
	env := abi.EnvironmentRef(s.Environment).Slug()
	switch s.Kind {
	case problem.RequestGrant:
		beside := ""
		if s.Grant != "" {
			beside = fmt.Sprintf(" --replaces %s, with what that one names", s.Grant)
		}
		return fmt.Sprintf("ecotone grant create %s %s %s%s%s%s%s", s.Subject, s.Capability, env,
			flags("--glob", s.Globs...), flags("--url", s.URL), flags("--space", s.Space), beside)
	case problem.RequestInstall:
		return fmt.Sprintf("ecotone biome install %s%s%s%s%s, with what it has already", s.Biome,
			flags("--environment", env), flags("--call", s.Call), flags("--endpoint", s.Endpoint), flags("--secret", s.Secret))
	case problem.RequestEnable:
		return "ecotone biome enable " + s.Biome
	case problem.RequestEndpoint:
		return fmt.Sprintf("ecotone endpoint put NAME %s, and biome install %s --endpoint NAME", s.URL, s.Biome)
	case problem.RequestCeiling:
		return fmt.Sprintf("ecotone env override %s %s", env, s.Classification)
	case problem.SwitchEnv:
		return open + flags("--environment", env)
	case problem.OpenSession:
		if s.Classification.Valid() {
			return open + flags("--environment", env) + flags("--clearance", s.Classification.String())
		}
		return open + flags("--environment", env) + ": this one has been given too much"
	case problem.UseSuccessor:
		return "ecotone invoke " + s.Capability
	case problem.UseAnother:
		if s.Capability != "" {
			return "ecotone invoke " + s.Capability
		}
	case problem.UseLess:
		return fmt.Sprintf("data that is at most %s", s.Classification)
	case problem.CorrectInput:
		return "input that satisfies the schema of " + s.Capability
	case problem.Wait:
		return fmt.Sprintf("%d seconds", s.Seconds)
	case problem.AwaitApproval:
		return "somebody else approves it"
	}
	return s.Detail
}

func flags(name string, values ...string) string {
	out := ""
	for _, v := range values {
		if v != "" {
			out += " " + name + " " + quoted(v)
		}
	}
	return out
}

// quoted is a word as a shell takes it.
func quoted(s string) string {
	if strings.ContainsAny(s, " *?[]{}'\"$&;|<>()\\`!#~") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
