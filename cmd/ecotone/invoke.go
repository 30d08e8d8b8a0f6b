package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
)

// InvokeCmd invokes a capability.
type InvokeCmd struct {
	Ref            string `arg:"" help:"Capability ref, as kb:page.read@1."`
	Input          string `help:"Input JSON, @FILE, or - for standard input." default:"{}" placeholder:"JSON"`
	Classification string `help:"How sensitive the input is." placeholder:"LEVEL"`
	Declassified   string `name:"declassification" help:"Id of an approved request to declassify, which this uses up." placeholder:"ID"`
	DeadlineMS     int64  `name:"deadline-ms" help:"End the invocation after this many milliseconds." placeholder:"MS"`
}

func (c *InvokeCmd) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if c.Classification != "" {
		h.Set("Ecotone-Classification", c.Classification)
	}
	if c.Declassified != "" {
		h.Set("Ecotone-Declassification", c.Declassified)
	}
	if c.DeadlineMS != 0 {
		h.Set("Ecotone-Deadline-Ms", strconv.FormatInt(c.DeadlineMS, 10))
	}
	return h
}

// Run sends one invocation and prints the capability's output.
func (c *InvokeCmd) Run(e *Env) error {
	input, err := e.readArgument(c.Input)
	if err != nil {
		return err
	}
	res, err := e.conn.call(e.ctx, e.conn.Invoke, http.MethodPost, "/v1/invoke/"+url.PathEscape(c.Ref), c.header(), input)
	if err != nil {
		return err
	}
	if res.status == http.StatusAccepted {
		return awaits(res)
	}
	if !e.json {
		fmt.Fprintf(e.stderr, "invocation %s, classification %s\n", res.header.Get("Ecotone-Invocation"), res.header.Get("Ecotone-Classification"))
		if successor := res.header.Get("Ecotone-Replaced-By"); successor != "" {
			fmt.Fprintf(e.stderr, "deprecated: %s replaces %s\n", successor, c.Ref)
		}
	}
	_, err = fmt.Fprintln(e.stdout, string(res.body))
	return err
}

// ExplainCmd shows what would be decided.
type ExplainCmd struct{ InvokeCmd }

// Run prints every check. The exit code is 3 when the invocation would be denied, 4 when it would wait for
// an approval.
func (c *ExplainCmd) Run(e *Env) error {
	input, err := e.readArgument(c.Input)
	if err != nil {
		return err
	}
	res, err := e.conn.call(e.ctx, e.conn.Invoke, http.MethodPost, "/v1/explain/"+url.PathEscape(c.Ref), c.header(), input)
	if err != nil {
		return err
	}
	var out struct {
		Decision string `json:"decision"`
		Code     string `json:"code"`
		Checks   []struct {
			Check string `json:"check"`
			State string `json:"state"`
			Code  string `json:"code"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(res.body, &out); err != nil {
		return fmt.Errorf("the explanation does not decode: %w", err)
	}
	err = e.show(res.body, func(w io.Writer, _ []byte) error {
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, k := range out.Checks {
			fmt.Fprintf(t, "%s\t%s\t%s\n", k.Check, k.State, k.Code)
		}
		fmt.Fprintf(t, "decision\t%s\t%s\n", out.Decision, out.Code)
		return t.Flush()
	})
	switch {
	case err != nil || out.Decision == "allow":
		return err
	case out.Decision == "needs_approval":
		return errQuiet(exitApproval)
	}
	return errQuiet(exitDenied)
}
