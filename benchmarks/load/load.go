// Package load drives an HTTP server on loopback.
//
// It promises that open-loop latency is taken from the moment a request was due, not from the
// moment it could be sent, so that a server that stalls is charged for everyone who would have
// come meanwhile; and that every run is bounded in time and ends by itself. It refuses to
// drive anything but loopback, and to know what is served.
package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Request is a whole HTTP/1.1 request in bytes.
type Request []byte

// Post makes a request. header is names and values in turn.
func Post(address, path, token string, body []byte, header ...string) Request {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, address, token, len(body))
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// Result is what one run measured.
type Result struct {
	Latency []time.Duration // of answered requests, sorted
	Took    time.Duration
	Status  map[int]int
	Errors  int // connections that failed
	Late    int // open loop: requests that were due and not sent before the run ended
}

// Rate is answered requests a second.
func (r *Result) Rate() float64 { return float64(len(r.Latency)) / r.Took.Seconds() }

// At is a percentile, in nanoseconds; 0 when nothing was answered.
func (r *Result) At(p float64) float64 {
	if len(r.Latency) == 0 {
		return 0
	}
	i := int(p / 100 * float64(len(r.Latency)))
	return float64(r.Latency[min(i, len(r.Latency)-1)])
}

// Bad counts answers outside 200.
func (r *Result) Bad() int {
	n := r.Errors
	for s, c := range r.Status {
		if s != 200 {
			n += c
		}
	}
	return n
}

// Plan is a run.
type Plan struct {
	Address     string
	Next        func(worker, n int) Request // the n-th request of a connection; nil ends it
	Connections int
	For         time.Duration
	Rate        float64 // requests a second over all connections; 0 is a closed loop
}

// Run carries a plan out. It returns after For and a grace for the last answers, or at once when
// ctx ends.
func Run(ctx context.Context, p Plan) (*Result, error) {
	a, err := netip.ParseAddrPort(p.Address)
	if err != nil || !a.Addr().IsLoopback() {
		return nil, fmt.Errorf("load: %s is not a loopback address", p.Address)
	}
	workers := make([]worker, p.Connections)
	for i := range workers {
		w := &workers[i]
		if w.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", p.Address); err != nil {
			return nil, err
		}
		defer w.conn.Close()
		w.reader = bufio.NewReaderSize(w.conn, 32<<10)
		w.status = map[int]int{}
		w.latency = make([]time.Duration, 0, 1<<14)
	}
	defer context.AfterFunc(ctx, func() {
		for i := range workers {
			_ = workers[i].conn.Close() // which ends whoever waits for an answer
		}
	})()
	begin := time.Now()
	end := begin.Add(p.For)
	var wg sync.WaitGroup
	var due chan time.Time // nil: a closed loop
	if p.Rate > 0 {
		due = make(chan time.Time, int(p.Rate*p.For.Seconds())+1) // nobody waits to be due
		wg.Go(func() { dispatch(ctx, p.Rate, begin, end, due) })
	}
	for i := range workers {
		wg.Go(func() { workers[i].run(ctx, p, i, end, due) })
	}
	wg.Wait()
	r := &Result{Took: time.Since(begin), Status: map[int]int{}}
	for i := range workers {
		w := &workers[i]
		r.Latency = append(r.Latency, w.latency...)
		r.Errors += w.errors
		r.Late += w.late
		for s, n := range w.status {
			r.Status[s] += n
		}
	}
	r.Late += len(due) // when no connection is left
	slices.Sort(r.Latency)
	return r, ctx.Err()
}

// dispatch hands out the moments at which requests are due. It sleeps in the kernel, on a thread
// of its own: the runtime's timers are rounded up to a millisecond when the process is idle, which
// is more than a request takes.
func dispatch(ctx context.Context, rate float64, begin, end time.Time, due chan<- time.Time) {
	defer close(due)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gap := float64(time.Second) / rate
	for n := 0; ; n++ {
		at := begin.Add(time.Duration(gap * float64(n)))
		if !at.Before(end) {
			return
		}
		for wait := time.Until(at); wait > 0; wait = time.Until(at) {
			if ctx.Err() != nil {
				return
			}
			t := syscall.NsecToTimespec(int64(min(wait, 50*time.Millisecond)))
			_ = syscall.Nanosleep(&t, nil)
		}
		due <- at
	}
}

type worker struct {
	conn    net.Conn
	reader  *bufio.Reader
	latency []time.Duration
	status  map[int]int
	errors  int
	late    int
}

// grace is how long a request that was sent is waited for.
const grace = 15 * time.Second

// run is one connection: it sends the next request when it has the answer, in an open loop not
// before it is due. What is due goes to whichever connection is free.
func (w *worker) run(ctx context.Context, p Plan, id int, end time.Time, due <-chan time.Time) {
	_ = w.conn.SetDeadline(end.Add(grace))
	for n := 0; ctx.Err() == nil; n++ {
		at := time.Now()
		if due != nil {
			var more bool
			if at, more = <-due; !more {
				return
			}
		}
		if !time.Now().Before(end) {
			if due == nil {
				return
			}
			w.late++
			continue
		}
		r := p.Next(id, n)
		if r == nil {
			return
		}
		status, err := w.exchange(r)
		if err != nil {
			w.errors++
			return
		}
		w.status[status]++
		w.latency = append(w.latency, time.Since(at))
	}
}

var (
	lengthHeader = []byte("content-length:")
	closeHeader  = []byte("connection: close")
)

// exchange sends one request and reads the answer to its end.
func (w *worker) exchange(r Request) (int, error) {
	if _, err := w.conn.Write(r); err != nil {
		return 0, err
	}
	line, err := w.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("load: a malformed answer: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length := -1
	for {
		line, err := w.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if len(line) > len(lengthHeader) && bytes.EqualFold(line[:len(lengthHeader)], lengthHeader) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):]))); err != nil {
				return 0, err
			}
		}
		if bytes.EqualFold(line, closeHeader) {
			return 0, io.ErrUnexpectedEOF
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("load: an answer without a length")
	}
	_, err = w.reader.Discard(length)
	return status, err
}
