package boundary_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// H14: what comes back from a guest is exactly one JSON value, bounded, and passed on to the
// byte; anything else is a code and never the bytes.
func TestOutput(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		output string
		code   abi.Code
	}{
		"object":           {`{"b":1,"a":[ ]}`, ""},
		"last byte":        {`7`, ""},
		"bignum":           {`123456789012345678901234567890.10`, ""},
		"exponent":         {`1E+2`, ""},
		"header text":      {"\"a\\r\\nSet-Cookie: x\"", ""},
		"nested":           {nested(abi.StrictMaxDepth), ""},
		"empty":            {``, abi.CodeOutputInvalid},
		"invalid UTF-8":    {"\"\xff\"", abi.CodeOutputInvalid},
		"not JSON":         {`hello`, abi.CodeOutputInvalid},
		"two values":       {`1 2`, abi.CodeOutputInvalid},
		"trailing garbage": {`{} x`, abi.CodeOutputInvalid},
		"duplicate keys":   {`{"a":1,"a":2}`, abi.CodeOutputInvalid},
		"deep":             {nested(30_000), abi.CodeOutputInvalid},
		"cut":              {`{"a":`, abi.CodeOutputInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ok(r.call("output", c.output))
			o := r.conclude()
			if c.code != "" {
				if o.Err == nil || o.Err.Code != c.code || o.Output != nil {
					t.Fatalf("%q, %v", o.Output, o.Err)
				}
				return
			}
			if o.Err != nil || string(o.Output) != c.output {
				t.Errorf("%q, %v", o.Output, o.Err)
			}
		})
	}
}

func TestOutputMissing(t *testing.T) {
	if o := newRig(t).conclude(); o.Err.Code != abi.CodeOutputMissing {
		t.Error(o.Err)
	}
}

// PF-D16: an output over the limit is an errno, nothing is kept of it, an earlier one does
// not stand in for it, and a later smaller one is good.
func TestOutputLimit(t *testing.T) {
	small := func(s *authority.Spec) { s.Limits[abi.LimitOutputBytes] = 4 }
	r := newRig(t, small)
	r.ok(r.call("output", `1234`))
	r.want(r.call("output", `12345`), abi.ETOOBIG)
	if o := r.conclude(); o.Err.Code != abi.CodeOutputLimit || o.Output != nil {
		t.Errorf("%q, %v", o.Output, o.Err)
	}
	r = newRig(t, small)
	r.want(r.call("output", `12345`), abi.ETOOBIG)
	r.ok(r.call("output", `5`))
	if o := r.conclude(); o.Err != nil || string(o.Output) != `5` {
		t.Errorf("%q, %v", o.Output, o.Err)
	}
}

// PF-D15: the limit is one of the whole output, whatever it is made of and however deep its bytes lie.
func TestOutputLimitIsOfTheWhole(t *testing.T) {
	padding := strings.Repeat("QUJD", 100)
	for _, output := range []string{
		`"` + padding + `"`, `{"content":[{"text":"` + padding + `"}]}`, `{"a":{"b":{"c":["` + padding + `"]}}}`,
		`{"structured":{"data":"data:;base64,` + padding + `"}}`, `[` + strings.Repeat("1,", 200) + `1]`, strings.Repeat(" ", 400) + `1`,
	} {
		for _, over := range []int64{0, 1} {
			r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitOutputBytes] = int64(len(output)) - over })
			r.call("output", output)
			if o := r.conclude(); over == 0 && string(o.Output) != output || over == 1 && abi.CodeOf(o.Err) != abi.CodeOutputLimit {
				t.Errorf("%.30s, %d over: %v", output, over, o.Err)
			}
		}
	}
}

func TestGuestError(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("output", `1`))
	r.want(r.call("error", "lower", "x"), abi.EINVAL)
	r.want(r.call("error", "", "x"), abi.EINVAL)
	r.ok(r.call("error", "NO_ROOM", "it is\nfull\x1b[31m"))
	o := r.conclude()
	want := boundary.GuestError{Code: "NO_ROOM", Message: `it is\nfull\u{1b}[31m`}
	if o.Err.Code != abi.CodeGuestError || o.Guest == nil || *o.Guest != want || o.Output != nil {
		t.Errorf("%v, %+v, %q", o.Err, o.Guest, o.Output)
	}
}

func TestResultRegister(t *testing.T) {
	r := newRig(t)
	if n := r.ok(r.call("input")); n != 8 || r.register("result_read") != `{"in":1}` || r.register("result_meta") != `{}` {
		t.Errorf("%d %s %s", n, r.register("result_read"), r.register("result_meta"))
	}
	r.out.answer = boundary.Result{Body: []byte("0123456789"), Meta: json.RawMessage(`{"version":"v"}`)}
	if n := r.ok(r.call("kv_get", "k")); n != 10 {
		t.Errorf("length %d", n)
	}
	for _, c := range []struct {
		off, n int
		want   string
	}{{0, 4, "0123"}, {4, 100, "456789"}, {10, 5, ""}, {11, 5, ""}, {0xffff_ffff, 5, ""}, {3, 0, ""}} {
		if n := r.ok(r.call("result_read", 1000, c.off, c.n)); string(r.mem[1000:1000+n]) != c.want {
			t.Errorf("from %d at most %d: %q", c.off, c.n, r.mem[1000:1000+n])
		}
	}
	// Calls that answer nothing of their own leave it alone.
	r.ok(r.call("log", 1, "x"))
	r.ok(r.call("time_now"))
	if r.register("result_read") != "0123456789" || r.register("result_meta") != `{"version":"v"}` {
		t.Error("the register changed")
	}
	// A refused call leaves nothing of an earlier one.
	r.out.err = abi.Errorf(abi.CodeKeyNotFound, "no")
	r.want(r.call("kv_get", "k"), abi.ENOENT)
	if r.register("result_read") != "" || r.register("result_meta") != "{}" {
		t.Errorf("left %q", r.register("result_read"))
	}
}

// A service that did its work and still ends in an errno keeps its result: an ambiguous edit,
// a failed child.
func TestResultWithACode(t *testing.T) {
	r := newRig(t)
	r.out.answer = boundary.Result{Code: abi.CodeEditAmbiguous, Meta: json.RawMessage(`{"count":3}`)}
	r.want(r.call("file_edit", "p", "a", "b", 0), abi.EAMBIGUOUS)
	if r.register("result_meta") != `{"count":3}` {
		t.Error(r.register("result_meta"))
	}
	r.out.answer = boundary.Result{Code: abi.CodeGuestTrap, Body: []byte(`{"code":"GUEST_TRAP"}`)}
	r.want(r.call("capability_invoke", "probe:other.run@1", "{}"), abi.ECHILD)
	if r.register("result_read") != `{"code":"GUEST_TRAP"}` {
		t.Error(r.register("result_read"))
	}
	if l := r.conclude().Receipt.Lines[1]; l.Code != abi.CodeGuestTrap {
		t.Errorf("receipt %+v", l)
	}
}

// S4: what the authority alone can say about a child is settled before anything is announced.
func TestChildren(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*authority.Spec)
		ref    string
		errno  abi.Errno
		code   abi.Code
	}{
		"not in the install grant": {nil, "probe:unknown.run@1", abi.EDENIED, abi.CodeMissingGrant},
		"not a ref":                {nil, "nonsense", abi.EINVAL, abi.CodeInvalidRequest},
		"itself":                   {nil, "probe:self.run@1", abi.EDENIED, abi.CodeChildCycle},
		"an ancestor": {
			func(s *authority.Spec) { s.Chain = []abi.CapabilityRef{"probe:above.run@1"} },
			"probe:above.run@1", abi.EDENIED, abi.CodeChildCycle,
		},
		"too deep": {func(s *authority.Spec) {
			s.Chain, s.Limits[abi.LimitChildDepth] = []abi.CapabilityRef{"a:b.c@1", "a:b.d@1"}, 2
		}, "probe:other.run@1", abi.EQUOTA, abi.CodeChildDepth},
		"nothing granted": {func(s *authority.Spec) { s.Calls = nil }, "probe:other.run@1", abi.EDENIED, abi.CodeMissingGrant}, // PF-A1
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(s *authority.Spec) {
				if c.change != nil {
					c.change(s)
				}
			})
			r.want(r.call("capability_invoke", c.ref, "{}"), c.errno)
			if len(r.out.events) > 0 {
				t.Errorf("events %v", r.out.events)
			}
			if code := r.conclude().Receipt.Lines[0].Code; code != c.code {
				t.Errorf("receipt says %s", code)
			}
		})
	}
}

// PF-D1: each budget bites, with its own code, and what is over it does not act.
func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		limit abi.Limit
		call  func(*rig) int64
	}{
		{abi.LimitChildren, func(r *rig) int64 { return r.call("capability_invoke", "probe:other.run@1", "{}") }},
		{abi.LimitHTTPRequests, func(r *rig) int64 { return r.call("http_fetch", `{"method":"GET","url":"https://a.example/"}`, "") }},
		{abi.LimitRandomBytes, func(r *rig) int64 { return r.call("random", 0, 1) }},
	} {
		row := c.limit.Info()
		t.Run(row.Name, func(t *testing.T) {
			r := newRig(t, func(s *authority.Spec) { s.Limits[c.limit] = 3 })
			for range 3 {
				r.ok(c.call(r))
			}
			events := len(r.out.events)
			r.want(c.call(r), row.Code.Errno())
			if len(r.out.events) != events {
				t.Errorf("events %v", r.out.events[events:])
			}
			lines := r.conclude().Receipt.Lines
			if code := lines[len(lines)-1].Code; code != row.Code {
				t.Errorf("receipt says %s", code)
			}
		})
	}
}

func TestFetchDocument(t *testing.T) {
	for name, c := range map[string]struct {
		doc   string
		errno abi.Errno
	}{
		"unknown field":    {`{"method":"GET","url":"https://a.example/","proxy":"x"}`, abi.EINVAL},
		"duplicate key":    {`{"method":"GET","url":"https://a.example/","url":"https://b.example/"}`, abi.EINVAL}, // PF-A9
		"not JSON":         {`GET /`, abi.EINVAL},
		"no host":          {`{"method":"GET","url":"/local"}`, abi.EINVAL},
		"another's secret": {`{"method":"GET","url":"https://a.example/","secret":"other"}`, abi.ESECRET}, // PF-F2
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.want(r.call("http_fetch", c.doc, ""), c.errno)
			if len(r.out.events) > 0 {
				t.Errorf("events %v", r.out.events)
			}
		})
	}
}

// PF-F2: another's secret and an absent one are one answer.
func TestSecretOfAnother(t *testing.T) {
	for _, name := range []string{"other", "", "\x00", strings.Repeat("x", 100)} {
		r := newRig(t)
		r.want(r.call("secret_hmac", name, "m"), abi.ESECRET)
		if len(r.out.events) > 0 {
			t.Errorf("%q: %v", name, r.out.events)
		}
	}
}

func TestListLimitsAreClamped(t *testing.T) {
	r := newRig(t)
	for _, limit := range []int{0, 1001, 0xffff_ffff} {
		r.ok(r.call("kv_list", "p", "a", limit))
	}
	r.ok(r.call("kv_list", "p", "a", 7))
	want := []string{"act list p a 1000", "act list p a 1000", "act list p a 1000", "act list p a 7"}
	for i := range want {
		if r.out.events[i] != want[i] {
			t.Errorf("%v", r.out.events)
		}
	}
	r = newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitFileBytes] = 100 })
	r.ok(r.call("file_read", "p", 5, 0xffff_ffff))
	r.want(r.call("file_read", "p", -1, 1), abi.EINVAL)
	r.want(r.call("file_edit", "p", "a", "b", 2), abi.EINVAL)
	// What is refused for its form reaches no service and no journal.
	if len(r.out.events) != 1 || r.out.events[0] != "act read p 5 100" {
		t.Errorf("%v", r.out.events)
	}
}

// PF-F17: two invocations see different bytes, and nobody can set the seed.
func TestRandomDiffers(t *testing.T) {
	draw := func() string {
		r := newRig(t)
		r.ok(r.call("random", 100, 32))
		return string(r.mem[100:132])
	}
	if a, b := draw(), draw(); a == b {
		t.Errorf("twice %x", a)
	}
}

func TestRandomFillsExactly(t *testing.T) {
	r := newRig(t)
	if n := r.ok(r.call("random", 10, 10_000)); n != 10_000 {
		t.Errorf("%d", n)
	}
	zeros := 0
	for _, b := range r.mem[10:10_010] {
		if b == 0 {
			zeros++
		}
	}
	if zeros > 200 {
		t.Errorf("%d of 10,000 bytes are zero", zeros)
	}
	for _, b := range append(r.mem[:10:10], r.mem[10_010:]...) {
		if b != 0 {
			t.Fatal("bytes outside the range were written")
		}
	}
	// What cannot succeed costs nothing.
	r.want(r.call("random", 1<<16, 1), abi.EFAULT)
	if used := r.conclude().Receipt.RandomBytes; used != 10_000 {
		t.Errorf("%d bytes used", used)
	}
}

// Clocks are coarse: 1 ms in boundary environments, 1 µs elsewhere (S6).
func TestClockIsCoarse(t *testing.T) {
	instant := time.Date(2026, 1, 2, 3, 4, 5, 123_456_789, time.UTC)
	for family, want := range map[bool]int64{true: 123_000_000, false: 123_456_000} {
		spec := permissive()
		spec.Boundary = family
		inv := boundary.New(boundary.Spec{
			Authority: authority.New(spec, func() *abi.Error { return nil }),
			Now:       func() time.Time { return instant },
		})
		inv.Enter(boundary.PhaseRun)
		got := boundary.Call(context.Background(), inv, function(t, "time_now"), make(ram, 16), nil)
		if got != instant.Truncate(time.Second).UnixNano()+want {
			t.Errorf("boundary %t: %d", family, got)
		}
	}
}

// Log records hold no control bytes, one per call, whatever the guest wrote.
func TestLogInjection(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("log", 2, "a\nlevel=error msg=\x1b[2Jforged\x00\xff\u202e\u2028"))
	r.want(r.call("log", 4, "x"), abi.EINVAL)
	logs := r.conclude().Receipt.Logs
	want := `a\nlevel=error msg=\u{1b}[2Jforged\u{0}` + "\uFFFD" + `\u{202e}\u{2028}`
	if len(logs) != 1 || logs[0].Text != want || logs[0].Level != boundary.LogWarn {
		t.Errorf("%+v", logs)
	}
}

// Past the quota records are dropped, one marker says how many, and no call fails.
func TestLogFlood(t *testing.T) {
	const quota = 4 << 10
	r := newRig(t, func(s *authority.Spec) {
		s.Limits[abi.LimitLogBytes], s.Limits[abi.LimitLogLineBytes] = quota, 100
	})
	const calls = 500
	for i := range calls {
		r.ok(r.call("log", 1, strings.Repeat("x", 90+i%20)))
	}
	logs := r.conclude().Receipt.Logs
	kept, markers, dropped := 0, 0, int64(0)
	for _, l := range logs {
		if l.Dropped > 0 {
			markers++
			dropped += l.Dropped
			continue
		}
		kept += len(l.Text)
		if len(l.Text) > 100 {
			t.Errorf("a line of %d bytes", len(l.Text))
		}
	}
	if kept > quota || markers != 1 || int64(len(logs)-1)+dropped != calls {
		t.Errorf("%d bytes kept, %d markers, %d records, %d dropped", kept, markers, len(logs), dropped)
	}
}

func TestLongLogLineIsCut(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitLogLineBytes] = 10 })
	r.ok(r.call("log", 0, "0123456789é"))
	r.ok(r.call("log", 0, "012345678é"))
	r.ok(r.call("log", 0, "0123456789"))
	logs := r.conclude().Receipt.Logs
	for i, want := range []boundary.LogRecord{{Text: "0123456789", Cut: true}, {Text: "012345678", Cut: true}, {Text: "0123456789"}} {
		if logs[i].Text != want.Text || logs[i].Cut != want.Cut {
			t.Errorf("record %d: %+v", i, logs[i])
		}
	}
}

// The receipt is bounded: what is past it is counted.
func TestReceiptIsBounded(t *testing.T) {
	r := newRig(t)
	const calls = boundary.MaxLines + 100
	for range calls {
		r.call("kv_get", strings.Repeat("k", 500))
	}
	o := r.conclude()
	if len(o.Receipt.Lines) != boundary.MaxLines || o.Receipt.Unlisted.Of("kv_get") != 100 || o.Receipt.HostCalls != calls {
		t.Errorf("%d lines, %v, %d calls", len(o.Receipt.Lines), o.Receipt.Unlisted, o.Receipt.HostCalls)
	}
	if n := len(o.Receipt.Lines[0].Target); n > 260 {
		t.Errorf("a target of %d bytes", n)
	}
}

func TestReceiptLine(t *testing.T) {
	r := newRig(t)
	r.out.answer = boundary.Result{Body: []byte("12345"), Target: "notes/a.md"}
	r.ok(r.call("file_read", "./notes//a.md", 0, 5))
	r.ok(r.call("time_now"))
	o := r.conclude()
	if len(o.Receipt.Lines) != 1 || o.Receipt.Unlisted.Of("time_now") != 1 {
		t.Fatalf("%+v", o.Receipt)
	}
	l := o.Receipt.Lines[0]
	if l.Call != 1 || l.Function != "file_read" || l.Target != "notes/a.md" || l.In != 13 || l.Out != 5 || l.Code != "" || l.Start < 0 || l.Took < 0 {
		t.Errorf("%+v", l)
	}
	if _, err := json.Marshal(o.Receipt); err != nil {
		t.Error(err)
	}
}
