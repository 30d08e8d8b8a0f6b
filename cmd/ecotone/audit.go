package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// AuditCmd is the noun audit.
type AuditCmd struct {
	List   AuditListCmd   `cmd:"" aliases:"ls" help:"List audit rows, the newest first."`
	Show   AuditShowCmd   `cmd:"" help:"Show one row: who, what, why, and what came of it."`
	Head   AuditHeadCmd   `cmd:"" help:"Print the log's signed head; keep it elsewhere."`
	Export AuditExportCmd `cmd:"" help:"Write an organisation's entries as JSON lines, each with its proof."`
	Verify AuditVerifyCmd `cmd:"" help:"Check a log's files, or an export, with nothing but its public key."`
}

// AuditListCmd lists.
type AuditListCmd struct {
	Page
	Kind       string `help:"invocation, refused, admin or system."`
	Capability string `help:"Only this capability." placeholder:"REF"`
	Subject    string `help:"Only this subject." placeholder:"SUBJECT"`
	Verdict    string `help:"allow or deny."`
	Parent     string `help:"Only children of this invocation." placeholder:"ID"`
	Root       string `help:"Only this invocation and all that were made for it, however deep." placeholder:"ID"`
}

// Run prints one page.
func (c *AuditListCmd) Run(e *Env) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/audit"+c.query(e.conn.Org, url.Values{
		"kind": {c.Kind}, "capability": {c.Capability}, "subject": {c.Subject}, "verdict": {c.Verdict}, "parent": {c.Parent}, "root": {c.Root},
	}), nil)
	if err != nil {
		return err
	}
	return e.show(res.body, func(w io.Writer, body []byte) error {
		var page struct {
			Items []audit.Row `json:"items"`
			Next  string      `json:"next"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("the answer does not decode: %w", err)
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "AUDIT ID\tTIME\tKIND\tWHO\tWHAT\tWHERE\tOUTCOME")
		for _, r := range page.Items {
			who, what, where, outcome := summary(&r)
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Time.UTC().Format("15:04:05.000"), r.Kind, who, what, where, outcome)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if page.Next != "" {
			fmt.Fprintf(w, "more: --after %s\n", page.Next)
		}
		return nil
	})
}

// summary is a row in four words.
func summary(r *audit.Row) (who, what, where, outcome string) {
	switch {
	case r.Decision != nil:
		d := r.Decision
		who, what, where = d.Subject.Kind+":"+d.Subject.ID, string(d.Capability), d.Environment.Slug()
		outcome = string(d.Verdict)
		if d.Code != "" {
			outcome += " " + string(d.Code)
		}
		if d.ReachCheck == "deferred" {
			outcome += " (reach deferred)"
		}
		if r.Ended != nil {
			outcome += ", " + string(r.Ended.Outcome)
			if r.Ended.Code != "" {
				outcome += " " + string(r.Ended.Code)
			}
		}
	case r.Admin != nil:
		who, what, where, outcome = r.Admin.Actor, r.Admin.Operation, r.Admin.Object, "done"
		if r.Admin.Code != "" {
			outcome = "refused " + string(r.Admin.Code)
		}
	case r.Refused != nil:
		who, what, where, outcome = "-", r.Refused.Method+" "+r.Refused.Route, r.Refused.Listener, "refused "+string(r.Refused.Code)
	case r.System != nil:
		who, what, where, outcome = "-", r.System.Event, "-", "-"
	}
	return who, what, where, outcome
}

// AuditHeadCmd prints the head.
type AuditHeadCmd struct{}

// Run prints the signed note as it is.
func (*AuditHeadCmd) Run(e *Env) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/audit/head"+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(res.body)
	return err
}

// ruleOf reads a rule from the form in which people write it.
func ruleOf(pattern string, methods []string) (egress.Rule, error) {
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return egress.Rule{}, usagef("%q is not like https://api.example.com/v1/**", pattern)
	}
	host, path, ok := strings.Cut(rest, "/")
	if !ok {
		return egress.Rule{}, usagef("%q has no path; write /** for all of them", pattern)
	}
	rule := egress.Rule{Scheme: scheme, Host: host, Methods: methods, Path: "/" + path}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		port, err := strconv.Atoi(host[i+1:])
		if err != nil || port < 1 || port > 65535 {
			return egress.Rule{}, usagef("%q has no port that could be", pattern)
		}
		rule.Host, rule.Port = host[:i], port
	}
	return rule, nil
}
