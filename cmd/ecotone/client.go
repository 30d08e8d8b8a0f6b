package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Exit codes, documented in docs/cli.md.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitDenied   = 3
	exitApproval = 4
)

// Connection says where a server is and which credential to present. The token comes from
// --token, --token-file, ECOTONE_TOKEN or ECOTONE_TOKEN_FILE.
type Connection struct {
	Admin     string `help:"Address of the control plane." default:"http://127.0.0.1:8181" env:"ECOTONE_ADMIN" placeholder:"URL"`
	Invoke    string `help:"Address of the data plane." default:"http://127.0.0.1:8180" env:"ECOTONE_INVOKE" placeholder:"URL"`
	Token     string `help:"Bearer token." env:"ECOTONE_TOKEN" placeholder:"eco_…"`
	TokenFile string `help:"File that holds the bearer token." env:"ECOTONE_TOKEN_FILE" type:"path"`
	CA        string `help:"File of the authorities that servers' certificates are trusted by, PEM; by default the system's." name:"ca" env:"ECOTONE_CA" type:"path" placeholder:"FILE"`
	Org       string `help:"Organisation." default:"default" env:"ECOTONE_ORG"`
}

// clientTimeout bounds one request of the command line: longer than any invocation may take.
const clientTimeout = 11 * time.Minute

// maxAnswer bounds what the command line reads of an answer, in bytes.
const maxAnswer = 64 << 20

type response struct {
	status int
	header http.Header
	body   []byte
}

// denied carries a problem document as the server sent it.
type denied struct {
	status int
	Code   abi.Code `json:"code"`
	Kind   abi.Kind `json:"kind"`
	Detail string   `json:"detail"`
	Title  string   `json:"title"`
	Hint   string   `json:"hint"`
	At     string   `json:"pointer"`
	Audit  string   `json:"auditId"`
	Decis  string   `json:"decision"`
	raw    []byte
}

func (d *denied) Error() string {
	msg := d.Detail
	if msg == "" {
		msg = d.Title
	}
	if d.At != "" {
		msg += " (at " + d.At + ")"
	}
	return string(d.Code) + ": " + msg
}

func (c *Connection) token() (string, error) {
	if c.Token != "" {
		return c.Token, nil
	}
	if c.TokenFile == "" {
		return "", usagef("no token: give --token-file, or set ECOTONE_TOKEN_FILE to DIR/operator.token or a session's token")
	}
	raw, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(raw)), nil
}

// trust is what a server's certificate is held to.
func (c *Connection) trust() (*tls.Config, error) {
	if c.CA == "" {
		return &tls.Config{}, nil
	}
	raw, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, usagef("%s has no certificate in it", c.CA)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// call sends one request and returns the answer, or *denied when it is not a 2xx.
func (c *Connection) call(ctx context.Context, base, method, path string, header http.Header, body []byte) (*response, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	u, err := url.Parse(strings.TrimSuffix(base, "/") + path)
	if err != nil || u.Host == "" {
		return nil, usagef("%q is not an address like http://127.0.0.1:8181", base)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer "+token)
	trust, err := c.trust()
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, TLSClientConfig: trust},
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the server at %s: %w", u.Host, errors.Unwrap(err))
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		d := &denied{status: res.StatusCode, raw: raw}
		if json.Unmarshal(raw, d) != nil || d.Code == "" {
			return nil, fmt.Errorf("the server answered %s with no problem document", res.Status)
		}
		return nil, d
	}
	return &response{status: res.StatusCode, header: res.Header, body: raw}, nil
}

// admin sends a JSON request to the control plane; in may be nil.
func (c *Connection) admin(ctx context.Context, method, path string, in any) (*response, error) {
	header := http.Header{}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		header.Set("Content-Type", "application/json")
	}
	return c.call(ctx, c.Admin, method, path, header, body)
}
