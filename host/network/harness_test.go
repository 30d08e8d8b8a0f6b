package network

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is a resolver that counts.
type names struct {
	queries atomic.Int64
	mu      sync.Mutex
	table   map[string][][]netip.Addr // answers in turn; the last one stays
}

func resolver(pairs ...string) *names {
	n := &names{table: map[string][][]netip.Addr{}}
	for i := 0; i < len(pairs); i += 2 {
		n.table[pairs[i]] = append(n.table[pairs[i]], []netip.Addr{netip.MustParseAddr(pairs[i+1])})
	}
	return n
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.queries.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.table[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.table[host] = answers[1:]
	}
	return answers[0], nil
}

// flow is an invocation's label with a ceiling.
type flow struct {
	mu             sync.Mutex
	label, ceiling abi.Classification
}

func (f *flow) Observe(c abi.Classification) *abi.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.FlowsTo(f.ceiling) {
		return abi.Errorf(abi.CodeClassificationCeiling, "above the ceiling")
	}
	f.label = abi.Join(f.label, c)
	return nil
}

func (f *flow) Emit(sink abi.Classification) *abi.Error {
	if !f.Label().FlowsTo(sink) {
		return abi.Errorf(abi.CodeClassificationFlow, "above the sink")
	}
	return nil
}

func (f *flow) Label() abi.Classification {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.label
}

// origin is a real HTTP origin on loopback.
type origin struct {
	*httptest.Server
	hits atomic.Int64
	host string // a name the tests resolve to it
	port int
}

func serve(t testing.TB, host string, h http.HandlerFunc) *origin {
	t.Helper()
	o := &origin{host: host}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.hits.Add(1)
		h(w, r)
	}))
	t.Cleanup(o.Close)
	o.port = portOf(t, o.Server.URL)
	return o
}

func portOf(t testing.TB, raw string) int {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (o *origin) url(path string) string {
	return "http://" + o.host + ":" + strconv.Itoa(o.port) + path
}

// raw is an origin below HTTP: speak has the connection after the request's header was read.
func raw(t testing.TB, host string, speak func(net.Conn)) *origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{host: host, port: l.Addr().(*net.TCPAddr).Port}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				buf, seen := make([]byte, 4096), []byte{}
				for !bytes.Contains(seen, []byte("\r\n\r\n")) {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					seen = append(seen, buf[:n]...)
				}
				o.hits.Add(1)
				speak(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return o
}

func client(t testing.TB, opt Options) *Client {
	t.Helper()
	c := New(opt)
	t.Cleanup(c.Close)
	return c
}

// local is a client for origins on loopback under the given names.
func local(t testing.TB, hosts ...string) (*Client, *names) {
	t.Helper()
	var pairs []string
	for _, h := range hosts {
		pairs = append(pairs, h+".", "127.0.0.1")
	}
	n := resolver(pairs...)
	return client(t, Options{AllowLoopback: true, Resolver: n}), n
}

func compile(t testing.TB, name string, r egress.Rule, loopback bool) *egress.Endpoint {
	t.Helper()
	e, err := egress.Compile(name, r, abi.Confidential, abi.Confidential, loopback)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// endpoint admits GET and POST anywhere on the origin.
func (o *origin) endpoint(t testing.TB) *egress.Endpoint {
	t.Helper()
	return compile(t, "origin", egress.Rule{Scheme: "http", Host: o.host, Port: o.port, Methods: []string{"GET", "POST"}, Path: "/**"}, true)
}

func scope(edit func(*authority.Spec), endpoints ...*egress.Endpoint) boundary.Scope {
	spec := authority.Spec{
		Org: "acme", Biome: "fetcher", Environment: abi.MakeEnvironmentRef("project"), Reach: abi.ReachIntegration,
		Ceiling: abi.Regulated, Endpoints: endpoints, Limits: abi.DefaultLimits(),
	}
	if edit != nil {
		edit(&spec)
	}
	return boundary.Scope{
		Authority: authority.New(spec, func() *abi.Error { return nil }),
		Flow:      &flow{label: abi.Public, ceiling: spec.Ceiling},
	}
}

func set(spec *authority.Spec, l abi.Limit, v int64) { spec.Limits[l] = v }

func get(t testing.TB, c *Client, s boundary.Scope, url string) (boundary.Result, error) {
	t.Helper()
	return c.Fetch(t.Context(), s, boundary.FetchRequest{Method: "GET", URL: url}, nil)
}

func metaOf(t testing.TB, r boundary.Result) meta {
	t.Helper()
	var m meta
	if err := json.Unmarshal(r.Meta, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// store is the records of organisation acme.
type store map[string]vault.Record

func (s store) Lookup(_ context.Context, org, name string) (vault.Record, error) {
	if r, ok := s[name]; ok && org == "acme" {
		return r, nil
	}
	return vault.Record{}, abi.Errorf(abi.CodeNotFound, "no such secret")
}

const sentinel = "SENTINEL-0123456789abcdef"

func keys(t testing.TB) *vault.Keyring {
	t.Helper()
	k, err := vault.NewKeyring(bytes.Repeat([]byte{7}, vault.MasterKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// secrets is a vault in which acme has the secret crm for the endpoint named origin.
func secrets(t testing.TB) *vault.Vault {
	t.Helper()
	k := keys(t)
	return vault.New(k, store{"crm": {
		Version: 1,
		Uses:    []vault.Use{{Kind: vault.KindHeader, Header: "Authorization", Prefix: "Bearer ", Endpoint: "origin"}},
		Sealed:  k.Seal("acme", "crm", 1, vault.NewValue([]byte(sentinel))),
	}})
}

func withSecret(spec *authority.Spec) { spec.Secrets = []string{"crm"} }
