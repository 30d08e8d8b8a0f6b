package network

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// nameServer answers queries for A records over UDP. A nil answer means silence.
type nameServer struct {
	conn   net.PacketConn
	answer func(name string) []netip.Addr

	mu    sync.Mutex
	asked []string
}

func startNameServer(t *testing.T, answer func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	r, _ := nameServerFor(t, answer)
	return r
}

func nameServerFor(t *testing.T, answer func(name string) []netip.Addr) (*net.Resolver, *nameServer) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, answer: answer}
	var wg sync.WaitGroup
	wg.Go(s.serve)
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return interruptible(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}), s
}

func (s *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.reply(buf[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

// reply speaks just enough of RFC 1035: one question, answers that point back at it.
func (s *nameServer) reply(q []byte) []byte {
	const header = 12
	var labels []string
	i := header
	for i < len(q) && q[i] != 0 {
		l := int(q[i])
		labels = append(labels, string(q[i+1:i+1+l]))
		i += 1 + l
	}
	kind := binary.BigEndian.Uint16(q[i+1:])
	end := i + 5
	name := strings.Join(labels, ".")
	s.mu.Lock()
	s.asked = append(s.asked, name)
	s.mu.Unlock()
	addrs := s.answer(name)
	if addrs == nil {
		return nil
	}
	out := append([]byte(nil), q[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180) // answer, recursion available
	binary.BigEndian.PutUint16(out[10:], 0)     // no additional records
	count := uint16(0)
	for _, a := range addrs {
		want := uint16(1)
		if a.Is6() {
			want = 28
		}
		if kind != want {
			continue
		}
		count++
		out = append(out, 0xc0, header, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0)
		out = binary.BigEndian.AppendUint16(out, uint16(len(a.AsSlice())))
		out = append(out, a.AsSlice()...)
	}
	binary.BigEndian.PutUint16(out[6:], count)
	return out
}

// The real resolver over a real name server: what it says is classified, search domains are
// not tried, and of several addresses one bad one refuses all (PF-B2, PF-B4).
func TestRealResolver(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	table := map[string][]netip.Addr{
		"origin.test": {netip.MustParseAddr("127.0.0.1")},
		"mapped.test": {netip.MustParseAddr("::ffff:169.254.169.254")},
		"mixed.test":  {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")},
		"inside.test": {netip.MustParseAddr("fd00:ec2::254")},
		"empty.test":  {},
	}
	r, server := nameServerFor(t, func(name string) []netip.Addr {
		if a, ok := table[name]; ok {
			return a
		}
		return []netip.Addr{}
	})
	c := client(t, Options{AllowLoopback: true, Resolver: r})
	for host, want := range map[string]abi.Code{
		"origin.test": "", "mapped.test": abi.CodeAddressRefused, "mixed.test": abi.CodeAddressRefused, "inside.test": abi.CodeAddressRefused,
		"empty.test": abi.CodeUpstreamFailed, "unknown.test": abi.CodeUpstreamFailed,
	} {
		at := &origin{host: host, port: o.port}
		if _, err := get(t, c, scope(nil, at.endpoint(t)), at.url("/")); abi.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", host, err, want)
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, name := range server.asked {
		if !strings.HasSuffix(name, ".test") || strings.Count(name, ".") != 1 {
			t.Errorf("asked for %s", name)
		}
	}
	if o.hits.Load() != 1 {
		t.Errorf("%d requests", o.hits.Load())
	}
}

// PF-D7: a name server that never answers ends with the request, and with the invocation.
func TestHangingResolver(t *testing.T) {
	c := client(t, Options{Resolver: startNameServer(t, func(string) []netip.Addr { return nil })})
	o := &origin{host: "origin.test", port: 80}
	short := scope(func(spec *authority.Spec) { set(spec, abi.LimitHTTPWall, 150) }, o.endpoint(t))
	if _, err := within(t, func() (boundary.Result, error) { return get(t, c, short, "http://origin.test/") }); abi.CodeOf(err) != abi.CodeUpstreamTimeout {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := within(t, func() (boundary.Result, error) {
		return c.Fetch(ctx, scope(nil, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: "http://origin.test/"}, nil)
	})
	if abi.CodeOf(err) != abi.CodeCanceled {
		t.Error(err)
	}
}
