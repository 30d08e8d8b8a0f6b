package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// rows prints the items of a listing, or one object, as a table of the named members.
func rows(columns ...string) func(io.Writer, []byte) error {
	return func(w io.Writer, body []byte) error {
		var page struct {
			Items []map[string]any `json:"items"`
			Next  string           `json:"next"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("the answer does not decode: %w", err)
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, strings.ToUpper(strings.Join(columns, "\t")))
		for _, item := range page.Items {
			cells := make([]string, len(columns))
			for i, c := range columns {
				cells[i] = cell(item[c])
			}
			fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if page.Next != "" {
			fmt.Fprintf(w, "more: --after %s\n", page.Next)
		}
		return nil
	}
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = cell(v[i])
		}
		return strings.Join(parts, ",")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}

// Page is what every listing takes.
type Page struct {
	After string `help:"Cursor of the page before." placeholder:"CURSOR"`
	Limit int    `help:"Items on a page." default:"50"`
}

func (p Page) query(org string, more url.Values) string {
	q := url.Values{}
	for k, v := range more {
		if len(v) > 0 && v[0] != "" {
			q[k] = v
		}
	}
	q.Set("org", org)
	if p.After != "" {
		q.Set("after", p.After)
	}
	if p.Limit != 0 {
		q.Set("limit", fmt.Sprint(p.Limit))
	}
	return "?" + q.Encode()
}

func (e *Env) orgQuery() string { return "?org=" + url.QueryEscape(e.conn.Org) }

// list fetches one page and prints it.
func (e *Env) list(path string, p Page, more url.Values, columns ...string) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, path+p.query(e.conn.Org, more), nil)
	if err != nil {
		return err
	}
	return e.show(res.body, rows(columns...))
}

// send makes one change and prints what the server made of it.
func (e *Env) send(method, path string, in any) error {
	res, err := e.conn.admin(e.ctx, method, path+e.orgQuery(), in)
	if err != nil {
		return err
	}
	if len(res.body) == 0 {
		return nil
	}
	return e.show(res.body, nil)
}

// put changes an object that may be there already, under the version the server shows.
func (e *Env) put(path string, in any) error {
	header := http.Header{"Content-Type": {"application/json"}}
	res, err := e.conn.admin(e.ctx, http.MethodGet, path+e.orgQuery(), nil)
	var no *denied
	switch {
	case err == nil:
		header.Set("If-Match", res.header.Get("ETag"))
	case asDenied(err, &no) && no.status == http.StatusNotFound:
		header.Set("If-None-Match", "*")
	default:
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if res, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodPut, path+e.orgQuery(), header, body); err != nil {
		return err
	}
	return e.show(res.body, nil)
}

func asDenied(err error, target **denied) bool {
	d, ok := err.(*denied)
	if ok {
		*target = d
	}
	return ok
}

// tokenFile is a new file that only its owner can read. It is gone again unless a token was kept
// in it.
type tokenFile struct {
	f    *os.File
	kept bool
}

// newTokenFile makes the file; one that is there is left as it is.
func newTokenFile(path string) (*tokenFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &tokenFile{f: f}, nil
}

func (t *tokenFile) keep(token string) error {
	_, err := t.f.WriteString(token + "\n")
	err = errors.Join(err, t.f.Sync())
	t.kept = err == nil
	return err
}

func (t *tokenFile) close() error {
	err := t.f.Close()
	if !t.kept {
		err = errors.Join(err, os.Remove(t.f.Name()))
	}
	return err
}

// set puts what was said into a request.
func set(in map[string]any, name, v string) {
	if v != "" {
		in[name] = v
	}
}

func expiry(d time.Duration) *time.Time {
	if d <= 0 {
		return nil
	}
	t := time.Now().Add(d).UTC()
	return &t
}
