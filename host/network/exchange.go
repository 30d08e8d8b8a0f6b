package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

type answer struct {
	body []byte
	meta json.RawMessage
}

// exchange resolves, dials, sends and reads, all within the wall limit of one request.
func (c *Client) exchange(ctx context.Context, s boundary.Scope, p *plan) (*answer, error) {
	limited, cancel := context.WithTimeout(ctx, p.wall)
	defer cancel()
	a, err := c.roundTrip(limited, s, p)
	if err != nil {
		return nil, outward(ctx, limited, p, err)
	}
	return a, nil
}

func (c *Client) roundTrip(ctx context.Context, s boundary.Scope, p *plan) (*answer, error) {
	addrs, err := c.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.Authority.Current(); err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	req, err := p.request(context.WithValue(ctx, vettedKey{}, vetted{addrs: addrs, deadline: deadline}))
	if err != nil {
		return nil, err
	}
	pool := c.pools.take(keyOf(s.Authority.Spec(), p.route.loopback))
	defer c.pools.put(pool)
	resp, err := pool.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return p.read(ctx, resp)
}

// request hands the settled URL to net/http and makes sure that what net/http will send is
// the very text that was matched.
func (p *plan) request(ctx context.Context) (*http.Request, error) {
	u, err := url.Parse(p.target.Scheme + "://" + p.target.Authority() + p.target.RequestURI())
	if err != nil || u.Host != p.target.Authority() || u.RequestURI() != p.target.RequestURI() {
		return nil, abi.Errorf(abi.CodeURLInvalid, "the URL cannot be sent as it is written")
	}
	var body io.Reader
	if len(p.body) > 0 {
		body = bytes.NewReader(p.body)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, u.String(), body)
	if err != nil {
		return nil, abi.Errorf(abi.CodeURLInvalid, "the URL cannot be sent as it is written")
	}
	req.URL, req.Header = u, p.outgoing()
	// net/http logs what arrives on an idle connection unasked. A connection that carried a
	// secret never becomes idle, so an echo behind the response reaches no log.
	req.Close = p.secret != nil
	return req, nil
}

func tooLarge(what string) *abi.Error {
	return abi.Errorf(abi.CodeResponseTooLarge, "the origin's response has %s", what)
}

func (p *plan) read(ctx context.Context, resp *http.Response) (*answer, error) {
	if headerLines(resp.Header) > MaxResponseHeaders {
		return nil, tooLarge("too many headers")
	}
	if resp.StatusCode < 200 {
		return nil, errors.New("network: the origin switched protocols")
	}
	if resp.ContentLength > p.bytes && p.method != http.MethodHead {
		return nil, tooLarge("more bytes than allowed")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, p.bytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > p.bytes {
		return nil, tooLarge("more bytes than allowed")
	}
	if p.secret != nil {
		if err := p.search(ctx, resp, body); err != nil {
			return nil, err
		}
	}
	m, err := describe(resp)
	if err != nil {
		return nil, err
	}
	return &answer{body: body, meta: m}, nil
}

// search looks for the secret in everything that came back (S15). What cannot be searched,
// because it is coded or a part although neither was asked for, is not delivered.
func (p *plan) search(ctx context.Context, resp *http.Response, body []byte) error {
	if resp.StatusCode == http.StatusPartialContent || resp.Header.Get("Content-Range") != "" {
		return errors.New("network: a part was sent although the whole was asked for")
	}
	for _, coding := range resp.Header.Values("Content-Encoding") {
		if !strings.EqualFold(coding, "identity") {
			return errors.New("network: a coded body was sent although identity was asked for")
		}
	}
	var head bytes.Buffer
	head.WriteString(resp.Status + "\n")
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		for name, values := range h {
			for _, v := range values {
				head.WriteString(name + ": " + v + "\n")
			}
		}
	}
	defer clear(head.Bytes())
	found, err := p.secret.Echoed(ctx, head.Bytes(), body)
	if err != nil {
		return err
	}
	if found {
		clear(body)
		return abi.Errorf(abi.CodeSecretEchoed, "the origin sent the secret back; the response was discarded")
	}
	return nil
}

// outward turns what went wrong into what the guest and the log may know. The text of
// protocol errors quotes the origin, which may be quoting the secret, so that with a secret
// the cause is dropped (PF-F5).
func outward(invocation, limited context.Context, p *plan, err error) error {
	var own *abi.Error
	if abi.AsErrorInto(err, &own) {
		return own
	}
	cause := err
	if p.secret != nil {
		cause = errors.New("network: detail withheld, the request bore a secret")
	}
	var timeout net.Error
	switch {
	case invocation.Err() != nil:
		return ended(invocation)
	case limited.Err() != nil, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return abi.Errorf(abi.CodeUpstreamTimeout, "the origin did not answer in time").WithCause(cause)
	case strings.Contains(err.Error(), "server response headers exceeded"): // net/http has no error value for it
		return tooLarge("more header bytes than allowed")
	}
	return abi.Errorf(abi.CodeUpstreamFailed, "the origin could not be reached or broke the protocol").WithCause(cause)
}

// ended says why the invocation's own context is over.
func ended(ctx context.Context) error {
	var own *abi.Error
	switch cause := context.Cause(ctx); {
	case abi.AsErrorInto(cause, &own):
		return own
	case errors.Is(cause, context.DeadlineExceeded):
		return abi.Errorf(abi.CodeDeadline, "the invocation did not end before its deadline")
	}
	return abi.Errorf(abi.CodeCanceled, "the invocation was cancelled")
}
