package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// InvocationCmd is the noun invocation, of a session's own.
type InvocationCmd struct {
	Show   InvocationShowCmd   `cmd:"" help:"Show one of the session's own invocations: its row, and how far a cancellation is."`
	Cancel InvocationCancelCmd `cmd:"" help:"Ask a running invocation of the session's own to end."`
}

// InvocationShowCmd shows.
type InvocationShowCmd struct {
	ID string `arg:"" help:"The invocation's id."`
}

// Run prints the row.
func (c *InvocationShowCmd) Run(e *Env) error {
	res, err := e.conn.call(e.ctx, e.conn.Invoke, http.MethodGet, "/v1/invocations/"+url.PathEscape(c.ID), nil, nil)
	if err != nil {
		return err
	}
	return e.show(res.body, nil)
}

// InvocationCancelCmd cancels.
type InvocationCancelCmd struct {
	ID string `arg:"" help:"The invocation's id."`
}

// Run asks once and prints how far it is: requested, acknowledged or proven.
func (c *InvocationCancelCmd) Run(e *Env) error {
	res, err := e.conn.call(e.ctx, e.conn.Invoke, http.MethodPost, "/v1/invocations/"+url.PathEscape(c.ID)+":cancel", nil, nil)
	if err != nil {
		return err
	}
	return e.show(res.body, func(w io.Writer, body []byte) error {
		var out struct {
			Cancel string `json:"cancel"`
		}
		if err := json.Unmarshal(body, &out); err != nil {
			return fmt.Errorf("the answer does not decode: %w", err)
		}
		_, err := fmt.Fprintln(w, out.Cancel)
		return err
	})
}
