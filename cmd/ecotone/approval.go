package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// ApprovalCmd is the noun approval.
type ApprovalCmd struct {
	List    ApprovalListCmd    `cmd:"" aliases:"ls" help:"List what waits, or waited, for a person's word."`
	Show    ApprovalShowCmd    `cmd:"" help:"Show all that an approval would be bound to, with the input."`
	Approve ApprovalApproveCmd `cmd:"" help:"Approve it; an invocation is run, once."`
	Reject  ApprovalRejectCmd  `cmd:"" help:"Reject it for good."`

	Grant  ApprovalGrantCmd  `cmd:"" help:"Let a principal of the role approver decide about a capability."`
	Grants ApprovalGrantsCmd `cmd:"" help:"List who may decide about what."`
	Revoke ApprovalRevokeCmd `cmd:"" help:"Revoke a grant to approve."`
}

// ApprovalListCmd lists.
type ApprovalListCmd struct {
	Page
	State string `help:"Only in this state, as pending." placeholder:"STATE"`
}

// Run prints one page.
func (c *ApprovalListCmd) Run(e *Env) error {
	return e.list("/v1/approvals", c.Page, url.Values{"state": {c.State}}, "id", "state", "kind", "subject", "capability", "label", "expires")
}

// ApprovalShowCmd shows.
type ApprovalShowCmd struct {
	ID string `arg:"" help:"The approval's id, which is the invocation's."`
}

// Run prints the request whole.
func (c *ApprovalShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, "/v1/approvals/"+url.PathEscape(c.ID), nil)
}

// ApprovalApproveCmd approves.
type ApprovalApproveCmd struct {
	ID     string `arg:"" help:"The approval's id."`
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
}

// Run approves once and prints how far it is.
func (c *ApprovalApproveCmd) Run(e *Env) error { return e.decide(c.ID, "approve", c.Reason) }

// ApprovalRejectCmd rejects.
type ApprovalRejectCmd struct {
	ID     string `arg:"" help:"The approval's id."`
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
}

// Run rejects once.
func (c *ApprovalRejectCmd) Run(e *Env) error { return e.decide(c.ID, "reject", c.Reason) }

func (e *Env) decide(id, verdict, reason string) error {
	return e.send(http.MethodPost, "/v1/approvals/"+url.PathEscape(id)+"/"+verdict, map[string]string{"reason": reason})
}

// ApprovalGrantCmd gives.
type ApprovalGrantCmd struct {
	Principal  string        `arg:"" help:"Name of the principal."`
	Capability string        `arg:"" help:"A capability ref, or * for whatever is asked."`
	Expires    time.Duration `help:"It ends by itself after this long." placeholder:"DURATION"`
}

// Run gives one grant to approve.
func (c *ApprovalGrantCmd) Run(e *Env) error {
	in := map[string]any{"principal": c.Principal, "capability": c.Capability}
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	return e.send(http.MethodPost, "/v1/approve-grants", in)
}

// ApprovalGrantsCmd lists.
type ApprovalGrantsCmd struct{ Page }

// Run prints one page.
func (c *ApprovalGrantsCmd) Run(e *Env) error {
	return e.list("/v1/approve-grants", c.Page, nil, "id", "principal", "capability", "expires")
}

// ApprovalRevokeCmd revokes.
type ApprovalRevokeCmd struct {
	ID string `arg:"" help:"Id of the grant to approve."`
}

// Run revokes one grant to approve.
func (c *ApprovalRevokeCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, "/v1/approve-grants/"+url.PathEscape(c.ID), nil)
}

// awaits is the answer to an invocation that waits for a person: it has not failed, and it has not run.
func awaits(res *response) error {
	var w struct {
		Invocation string    `json:"invocationId"`
		Expires    time.Time `json:"expires"`
		Code       abi.Code  `json:"code"`
	}
	if err := json.Unmarshal(res.body, &w); err != nil || w.Invocation == "" {
		return fmt.Errorf("the answer does not say what it waits for: %s", res.body)
	}
	return &denied{
		status: res.status, Code: w.Code, Audit: w.Invocation, Decis: "needs_approval", raw: res.body,
		Detail: "a person has to approve it first, until " + w.Expires.Format(time.RFC3339),
		Hint:   "ecotone invocation show " + w.Invocation + " says what came of it",
	}
}
