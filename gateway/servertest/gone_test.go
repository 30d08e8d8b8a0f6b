package servertest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// send writes one invocation to a connection of its own.
func send(t *testing.T, s *servertest.Session, ref string, times int) *net.TCPConn {
	t.Helper()
	address := strings.TrimPrefix(s.G.Invoke, "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	one := fmt.Sprintf("POST /v1/invoke/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", ref, address, s.Token)
	if _, err := io.WriteString(c, strings.Repeat(one, times)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// newest waits until there is one more invocation than before on record, and returns its row once ok.
func newest(t *testing.T, g *servertest.Gateway, before int, what string, ok func(row map[string]any) bool) map[string]any {
	t.Helper()
	for range 3000 {
		if rows := g.Rows("&kind=invocation"); len(rows) > before && ok(rows[0]) {
			return rows[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no invocation is %s", what)
	return nil
}

// PF-I9: who closes the connection, or breaks it, has cancelled what it asked for: the guest ends long
// before its time, the row says why, and the place is free.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	g, s := spinning(t)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 300_000}) // so that nothing else ends it
	for name, leave := range map[string]func(*net.TCPConn){
		"closes": func(c *net.TCPConn) { c.Close() },
		"resets": func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
	} {
		before, started := len(g.Rows("&kind=invocation")), g.Server.Started()
		c := send(t, s, "test:busy.spin@1", 1)
		newest(t, g, before, "running", func(map[string]any) bool { return g.Server.Started() > started })
		leave(c)
		row := newest(t, g, before, "ended", func(row map[string]any) bool { return row["ended"] != nil })
		if ended := row["ended"].(map[string]any); ended["code"] != "CANCELED" || ended["outcome"] != "failed" {
			t.Errorf("who %s: the row says %v", name, ended)
		}
	}
	running(t, g, 0)
	errnosOf(s.Invoke("test:busy.leaf@1", map[string]int{}).Want(200))
}

// running waits until as many invocations run or wait.
func running(t *testing.T, g *servertest.Gateway, want int) {
	t.Helper()
	var now string
	for range 3000 {
		r := g.Do("GET", g.Ops+"/metrics", "", nil).Want(200)
		for line := range strings.Lines(string(r.Body)) {
			if v, ok := strings.CutPrefix(line, "ecotone_invocations_running "); ok {
				now = strings.TrimSpace(v)
			}
		}
		if now == fmt.Sprint(want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s invocations run where %d should", now, want)
}

// A caller that sends its next request before it has the answer has not gone away: all are answered, in
// order, on the one connection.
func TestCallerThatPipelines(t *testing.T) {
	t.Parallel()
	g, s := spinning(t)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 1000}) // many times what it takes to look for a caller
	c := send(t, s, "test:busy.spin@1", 3)
	in := bufio.NewReader(c)
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for i := range 3 {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), "DEADLINE_EXCEEDED") {
			t.Errorf("answer %d: %v %s", i, err, body)
		}
	}
	running(t, g, 0)
}
