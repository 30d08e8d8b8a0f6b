package network

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
)

const (
	maxPools        = 256
	idlePerHost     = 2
	idlePerPool     = 8
	connsPerHost    = 32
	idleTime        = 30 * time.Second
	maxDialAttempts = 8
)

// poolKey separates connections and TLS sessions (PF-B14). Loopback is part of it: a
// connection made under a rule that permits loopback serves no rule that does not.
type poolKey struct {
	org, biome  string
	environment abi.EnvironmentRef
	loopback    bool
}

func keyOf(spec *authority.Spec, loopback bool) poolKey {
	return poolKey{org: spec.Org, biome: spec.Biome, environment: spec.Environment, loopback: loopback}
}

// pools holds one transport for each key, at most maxPools; the one that was used least
// recently makes room.
type pools struct {
	make func() *http.Transport

	mu   sync.Mutex
	all  map[poolKey]*pool
	tick uint64
}

type pool struct {
	transport *http.Transport
	used      uint64 // tick of the last use; guarded by pools.mu
	running   int    // requests; guarded by pools.mu
	retired   bool   // guarded by pools.mu
}

func newPools(makeTransport func() *http.Transport) *pools {
	return &pools{make: makeTransport, all: map[poolKey]*pool{}}
}

func (ps *pools) take(k poolKey) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[k]
	if p == nil {
		if len(ps.all) >= maxPools {
			ps.evict()
		}
		p = &pool{transport: ps.make()}
		ps.all[k] = p
	}
	ps.tick++
	p.used = ps.tick
	p.running++
	return p
}

// evict drops the least recently used pool. Lock should be held.
func (ps *pools) evict() {
	var oldest poolKey
	var found *pool
	for k, p := range ps.all {
		if found == nil || p.used < found.used {
			oldest, found = k, p
		}
	}
	delete(ps.all, oldest)
	ps.retire(found)
}

// retire closes what is idle; what is running is closed when it is put back. Lock should be held.
func (ps *pools) retire(p *pool) {
	p.retired = true
	p.transport.CloseIdleConnections()
}

func (ps *pools) put(p *pool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.running--
	if p.retired && p.running == 0 {
		p.transport.CloseIdleConnections()
	}
}

func (ps *pools) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for k, p := range ps.all {
		delete(ps.all, k)
		ps.retire(p)
	}
}

// newTransport speaks HTTP/1.1, without proxy, cookies, compression or TLS resumption.
func (c *Client) newTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            c.dialVetted,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.opt.RootCAs},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConns:           idlePerPool,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxConnsPerHost:        connsPerHost,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: MaxResponseHeaderBytes,
		Protocols:              &protocols,
	}
}

type vettedKey struct{}

// vetted travels with the request's context to where the transport dials. The transport
// dials under a context that outlives the request, hence the deadline.
type vetted struct {
	addrs    []netip.AddrPort
	deadline time.Time
}

// dialVetted ignores the name it is given: it dials the addresses that were classified, in
// their order, each with a fair part of the time that is left (PF-B4).
func (c *Client) dialVetted(ctx context.Context, _, _ string) (net.Conn, error) {
	v, ok := ctx.Value(vettedKey{}).(vetted)
	if !ok || len(v.addrs) == 0 {
		return nil, errors.New("network: no address was classified for this connection")
	}
	ctx, cancel := context.WithDeadline(ctx, v.deadline)
	defer cancel()
	addrs := v.addrs[:min(len(v.addrs), maxDialAttempts)]
	var failed error
	for i, a := range addrs {
		part := time.Until(v.deadline) / time.Duration(len(addrs)-i)
		attempt, done := context.WithTimeout(ctx, part)
		conn, err := c.dial(attempt, "tcp", a.String())
		done()
		if err == nil {
			return conn, nil
		}
		failed = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}
