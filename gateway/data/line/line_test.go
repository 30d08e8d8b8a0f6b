//go:build linux || darwin

package line

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// pair is both ends of a connection.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); c.Close() })
	return a.(*net.TCPConn), c.(*net.TCPConn)
}

// becomes waits until Gone is as expected: what the other end did takes a moment to arrive.
func becomes(t *testing.T, c net.Conn, want bool) {
	t.Helper()
	for range 3000 {
		if Gone(c) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("Gone stays %v", !want)
}

func TestGone(t *testing.T) {
	for name, leave := range map[string]func(c *net.TCPConn) error{
		"closed":        func(c *net.TCPConn) error { return c.Close() },
		"reset":         func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"sends no more": func(c *net.TCPConn) error { return c.CloseWrite() },
	} {
		here, there := pair(t)
		if Gone(here) {
			t.Fatalf("%s: gone while it is there", name)
		}
		if err := leave(there); err != nil {
			t.Fatal(err)
		}
		becomes(t, here, true)
	}
}

// Bytes that wait are a sign of life, stay where they are, and hide what comes after them.
func TestGoneLeavesWhatWaits(t *testing.T) {
	here, there := pair(t)
	if _, err := io.WriteString(there, "GET"); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(here, one); err != nil { // now the rest is there too
		t.Fatal(err)
	}
	there.Close()
	for range 3 {
		if Gone(here) {
			t.Fatal("gone although something waits")
		}
	}
	rest, err := io.ReadAll(here)
	if err != nil || string(one)+string(rest) != "GET" {
		t.Fatalf("%q %v", rest, err)
	}
	if !Gone(here) {
		t.Error("there although it closed")
	}
	here.Close()
	if Gone(here) {
		t.Error("what is closed on this side cannot be told of")
	}
}

// A connection that is being read from can be asked about, and one that is not the system's says no.
func TestGoneOfOthers(t *testing.T) {
	here, there := pair(t)
	read := make(chan error, 1)
	go func() { _, err := here.Read(make([]byte, 1)); read <- err }()
	if Gone(here) {
		t.Error("gone while it is read from")
	}
	there.Close()
	if err := <-read; err != io.EOF {
		t.Error(err)
	}
	a, b := net.Pipe()
	b.Close()
	defer a.Close()
	if Gone(a) || !Gone(wrapped{here}) {
		t.Error("a pipe is the system's, or what is below a connection is not found")
	}
}

type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// With TLS a goodbye is on the connection in front of its end.
func TestGoneOverTLS(t *testing.T) {
	here, there := pair(t)
	over := wrapped{here}
	if Gone(over) {
		t.Fatal("gone while it is there")
	}
	if _, err := io.WriteString(there, "a record that nobody reads"); err != nil {
		t.Fatal(err)
	}
	if Gone(over) {
		t.Fatal("gone although it may send more")
	}
	there.Close()
	becomes(t, over, runtime.GOOS == "linux")
}
