// Package network sends the HTTP requests of guests.
//
// Everything that can refuse a request is settled before its name is resolved: the URL, the
// endpoint rules, the headers, the label and the secret (S16). Then every address of the
// name is classified, and the connection goes to one of exactly those addresses. Redirects
// are answers, not orders: they come back to the guest and are never followed. There are no
// proxies, cookies or credentials but the secret that a rule allows.
//
// The package refuses to know who decided what an invocation may do, and how often it may ask.
package network

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Options configure a [Client]. The zero value is safe: no loopback, no secrets, the
// system's resolver and certificate authorities.
type Options struct {
	// AllowLoopback is the server's key to loopback; the endpoint holds the other (PF-A25).
	AllowLoopback bool
	// Listeners returns the addresses this process listens on. They are refused whatever
	// else allows them; an unspecified address means that port on every address of the machine.
	Listeners func() []netip.AddrPort
	Resolver  Resolver       // nil: SystemResolver
	Secrets   *vault.Vault   // nil: every secret is denied
	RootCAs   *x509.CertPool // nil: the system's
}

// Client implements [boundary.Fetcher]. Safe for concurrent use. Close it.
type Client struct {
	opt   Options
	pools *pools
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// New makes a client. It opens nothing.
func New(opt Options) *Client {
	if opt.Resolver == nil {
		opt.Resolver = SystemResolver()
	}
	c := &Client{opt: opt, dial: (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext}
	c.pools = newPools(c.newTransport)
	return c
}

// Close ends idle connections. Requests that are running end by their own contexts.
func (c *Client) Close() { c.pools.close() }

// Fetch sends one request and returns its response: the body in Body, {status, headers} in
// Meta. The method, headers and URL are the guest's; reach, count and the durable announcement are
// the boundary's business before it calls.
//
// Result.Target is set as soon as the URL is understood, also beside an error. The
// endpoint's label joins the invocation's before anything that came from outside is
// returned, errors included. SECRET_ECHOED means that the invocation must end.
//
// Errors before anything is resolved: URL_INVALID, ENDPOINT_NOT_ALLOWED, HEADER_REFUSED,
// ARGUMENT_INVALID, REQUEST_TOO_LARGE, CLASSIFICATION_FLOW, SECRET_DENIED, and whatever
// withdrew the authority. After: ADDRESS_REFUSED, UPSTREAM_FAILED, UPSTREAM_TIMEOUT,
// RESPONSE_TOO_LARGE, SECRET_ECHOED, CANCELED, DEADLINE_EXCEEDED.
func (c *Client) Fetch(ctx context.Context, s boundary.Scope, req boundary.FetchRequest, body []byte) (boundary.Result, error) {
	u, err := egress.ParseURL(req.URL)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: u.String()}
	p, err := c.settle(ctx, s, req, u, body)
	if err != nil {
		return res, err
	}
	defer p.release()
	a, err := c.exchange(ctx, s, p)
	if refused := s.Flow.Observe(p.route.label); refused != nil {
		return res, endpointRefused(refused)
	}
	if err != nil {
		return res, err
	}
	res.Body, res.Meta = a.body, a.meta
	return res, nil
}

// route is what the rules that admit a request say together: each may restrict, none may
// loosen.
type route struct {
	endpoints []*egress.Endpoint
	clearance abi.Classification
	label     abi.Classification
	loopback  bool
}

func match(spec *authority.Spec, method string, u *egress.Target) (route, bool) {
	for _, l := range spec.Egress {
		if !l.Admits(u) {
			return route{}, false
		}
	}
	r := route{clearance: abi.Regulated, label: abi.Public, loopback: true}
	for _, e := range spec.Endpoints {
		if !e.Match(method, u) {
			continue
		}
		r.endpoints = append(r.endpoints, e)
		r.clearance = abi.Meet(r.clearance, e.Clearance)
		r.label = abi.Join(r.label, e.Label)
		r.loopback = r.loopback && e.Loopback
	}
	return r, len(r.endpoints) > 0
}

// endpointRefused is one constant answer: it does not say which part of which rule failed,
// and nothing has been resolved.
func endpointRefused(cause error) *abi.Error {
	e := abi.Errorf(abi.CodeEndpointRefused, "no endpoint rule allows this request")
	if cause != nil {
		e.Cause = cause
	}
	return e
}

// plan is a request that was settled and has not acted.
type plan struct {
	method  string
	target  *egress.Target
	headers map[string]string
	body    []byte
	route   route
	secret  *vault.Credential // nil: none
	wall    time.Duration
	bytes   int64
}

func (p *plan) release() {
	if p.secret != nil {
		p.secret.Release()
	}
}

// settle is everything that can refuse a request without touching the outside.
func (c *Client) settle(ctx context.Context, s boundary.Scope, req boundary.FetchRequest, u *egress.Target, body []byte) (*plan, error) {
	if s.Authority == nil || s.Flow == nil {
		return nil, endpointRefused(errors.New("network: no authority"))
	}
	spec := s.Authority.Spec()
	r, ok := match(spec, req.Method, u)
	if !ok {
		return nil, endpointRefused(nil)
	}
	if err := checkHeaders(req); err != nil {
		return nil, err
	}
	p := &plan{
		method: req.Method, target: u, headers: req.Headers, body: body, route: r,
		wall:  time.Duration(spec.Limits.Get(abi.LimitHTTPWall)) * time.Millisecond,
		bytes: spec.Limits.Get(abi.LimitHTTPBytes),
	}
	if len(body) > 0 && (req.Method == "GET" || req.Method == "HEAD") {
		return nil, abi.Errorf(abi.CodeArgumentInvalid, "a %s request has no body", req.Method)
	}
	if int64(len(body)) > p.bytes {
		return nil, abi.Errorf(abi.CodeRequestTooLarge, "the request body has %d bytes; at most %d are sent", len(body), p.bytes)
	}
	if err := s.Flow.Emit(r.clearance); err != nil {
		return nil, err
	}
	// An answer that could never be delivered is not asked for, and the endpoint looks absent (S5).
	if !r.label.FlowsTo(spec.Ceiling) {
		return nil, endpointRefused(errors.New("network: the endpoint's label is above the ceiling"))
	}
	if req.Secret != "" {
		if err := c.bind(ctx, s, req, p); err != nil {
			return nil, err
		}
	}
	if err := s.Authority.Current(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (c *Client) bind(ctx context.Context, s boundary.Scope, req boundary.FetchRequest, p *plan) error {
	if c.opt.Secrets == nil {
		return abi.Errorf(abi.CodeSecretDenied, "the secret is not there, not bound to this biome, or not for this use")
	}
	secret, err := c.opt.Secrets.Header(ctx, s, req.Secret, p.route.endpoints, req.Method, p.target)
	if err != nil {
		return err
	}
	for name := range req.Headers {
		if egress.SameHeader(name, secret.Name()) {
			secret.Release()
			return headerRefused(name, "is the one the secret is sent in")
		}
	}
	p.secret = secret
	return nil
}

// bearsRange reports whether the guest asks for a part of the answer, by which an echo
// could be had in slices (S15).
func bearsRange(headers map[string]string) (string, bool) {
	names := make([]string, 0, 2)
	for name := range headers {
		if egress.SameHeader(name, "Range") || egress.SameHeader(name, "If-Range") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}

var _ boundary.Fetcher = (*Client)(nil)
