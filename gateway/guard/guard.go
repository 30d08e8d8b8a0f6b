// Package guard holds the checks that every listener makes of every request before
// anything else: who it is addressed to, which page sent it, and whether it came out of
// this very process.
//
// The checks are one pure function over [Facts], so that the fasthttp and the net/http
// listeners cannot disagree (S16, S19). The package refuses to know about tokens.
package guard

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Facts is what a listener knows of a request from its head.
type Facts struct {
	Host      string
	Origin    []string // every Origin header, as sent
	FetchSite string   // Sec-Fetch-Site
	Nonce     []string // every hairpin header
	Forwarded bool     // a header of a reverse proxy is present; see [Forwards]
}

// forwarding are the headers that reverse proxies add, beside all that begin with X-Forwarded-.
var forwarding = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
	"Cf-Connecting-Ip", "Cf-Ray", "True-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip",
}

// Forwards reports whether a header of this name says that a reverse proxy is in front. A
// development session is refused when one is present: behind a proxy, everyone is loopback (S19).
func Forwards(name string) bool {
	const prefix = "X-Forwarded-"
	if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
		return true
	}
	return slices.ContainsFunc(forwarding, func(f string) bool { return strings.EqualFold(f, name) })
}

// IsJSON reports whether a Content-Type is that of JSON: in UTF-8, which it may say (PF-A4).
func IsJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json" && OnlyUTF8(params)
}

// OnlyUTF8 reports whether the parameters of a media type say nothing, or that the text is UTF-8.
func OnlyUTF8(params map[string]string) bool {
	for k, v := range params {
		if k != "charset" || !strings.EqualFold(v, "utf-8") {
			return false
		}
	}
	return true
}

// Guard is one listener's expectations. It is immutable and safe for concurrent use.
type Guard struct {
	hosts map[string]bool
	nonce string
}

// New makes a guard for a listener bound to addr that also answers to the given extra
// host names (with or without port). Loopback names are accepted when addr is loopback,
// nonce is the process's hairpin value.
func New(addr net.Addr, extra []string, nonce string) *Guard {
	g := &Guard{hosts: map[string]bool{}, nonce: nonce}
	host, port, err := net.SplitHostPort(addr.String())
	if err == nil {
		g.add(host, port)
		if ip, err := netip.ParseAddr(host); err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
				g.add(name, port)
			}
		}
	}
	for _, e := range extra {
		if h, p, err := net.SplitHostPort(e); err == nil {
			g.add(h, p)
		} else {
			g.add(strings.Trim(e, "[]"), port)
		}
	}
	return g
}

func (g *Guard) add(host, port string) {
	host = strings.ToLower(host)
	g.hosts[net.JoinHostPort(host, port)] = true
	if port == "80" || port == "443" {
		g.hosts[host] = true
		if strings.Contains(host, ":") {
			g.hosts["["+host+"]"] = true
		}
	}
}

// Check judges a request's head. Nil means that it may go on to authentication.
func (g *Guard) Check(f Facts) *abi.Error {
	for _, n := range f.Nonce {
		if subtle.ConstantTimeCompare([]byte(n), []byte(g.nonce)) == 1 {
			return abi.Errorf(abi.CodeHairpinRefused, "a guest of this gateway may not call the gateway")
		}
	}
	if len(f.Nonce) > 0 {
		return abi.Errorf(abi.CodeHairpinRefused, "the request was sent by a guest of a gateway")
	}
	if !g.hosts[strings.ToLower(f.Host)] {
		return abi.Errorf(abi.CodeHostRefused, "this listener does not serve %s", abi.Quote(f.Host)).
			WithHint("use the address the server printed when it became ready, or start it with --host-name")
	}
	if len(f.Origin) > 1 {
		return abi.Errorf(abi.CodeOriginRefused, "more than one Origin header")
	}
	if len(f.Origin) == 1 && !g.sameOrigin(f.Origin[0]) {
		return abi.Errorf(abi.CodeOriginRefused, "requests from pages of %s are refused", abi.Quote(f.Origin[0]))
	}
	switch f.FetchSite {
	case "", "same-origin", "none":
	default:
		return abi.Errorf(abi.CodeOriginRefused, "cross-site requests are refused")
	}
	return nil
}

func (g *Guard) sameOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.Path != "" || u.User != nil {
		return false
	}
	host := strings.ToLower(u.Host)
	if u.Port() == "" {
		port := 80
		if u.Scheme == "https" {
			port = 443
		}
		host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	return g.hosts[host]
}
