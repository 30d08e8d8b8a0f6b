package extism

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// services stand for what is outside: they keep what they are given and write down what is asked.
type services struct {
	keys   map[string]string
	asked  []string
	answer boundary.Result
	err    error
}

func (s *services) Get(_ context.Context, _ boundary.Scope, key string) (boundary.Result, error) {
	s.asked = append(s.asked, "get "+key)
	v, ok := s.keys[key]
	if !ok {
		return boundary.Result{}, abi.Errorf(abi.CodeKeyNotFound, "there is no such key")
	}
	return boundary.Result{Body: []byte(v)}, s.err
}

func (s *services) Put(_ context.Context, _ boundary.Scope, key string, value []byte) (boundary.Result, error) {
	s.asked = append(s.asked, "put "+key)
	if s.err == nil {
		s.keys[key] = string(value)
	}
	return boundary.Result{HasValue: true}, s.err
}

func (s *services) Delete(_ context.Context, _ boundary.Scope, key string) (boundary.Result, error) {
	s.asked = append(s.asked, "delete "+key)
	delete(s.keys, key)
	return boundary.Result{HasValue: true}, s.err
}

func (s *services) List(context.Context, boundary.Scope, string, string, int) (boundary.Result, error) {
	panic("nobody lists")
}

func (s *services) Fetch(_ context.Context, _ boundary.Scope, r boundary.FetchRequest, body []byte) (boundary.Result, error) {
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		headers = append(headers, name+"="+r.Headers[name])
	}
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL+" "+strings.Join(headers, ",")+" "+string(body)))
	return s.answer, s.err
}

func (s *services) Started(context.Context, *authority.Authority) error { return nil }
func (s *services) Announce(context.Context, *authority.Authority, int, string, string) error {
	return nil
}

func (s *services) Closed(context.Context, *authority.Authority, int, abi.Code) error { return nil }

// rig is an invocation whose capability makes calls of the interface.
type rig struct {
	t   testing.TB
	inv *boundary.Invocation
	out services
	ctx context.Context
}

func newRig(t testing.TB, input string, change ...func(*authority.Spec)) *rig {
	r := &rig{t: t, out: services{keys: map[string]string{}}, ctx: context.Background()}
	spec := authority.Spec{
		Invocation: "01TEST", Org: "default", Biome: "plugin", Capability: "plugin:a.run@1", Face: abi.FaceExtism, OutputEncoding: abi.EncodingText,
		Reach: abi.ReachIntegration, Floor: abi.Public, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated, Limits: abi.DefaultLimits(),
		Config: map[string]string{"greeting": "hello", "empty": ""},
	}
	for _, c := range change {
		c(&spec)
	}
	r.inv = boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return nil }), Input: []byte(input),
		Services: boundary.Services{KV: &r.out, HTTP: &r.out, Journal: &r.out},
	})
	r.inv.Enter(boundary.PhaseInitialize)
	r.inv.Enter(boundary.PhaseRun)
	return r
}

var byName = func() map[string]*boundary.Door {
	m := map[string]*boundary.Door{}
	for i := range Doors() {
		m[Doors()[i].Name] = &Doors()[i]
	}
	return m
}()

// call makes one call of the interface.
func (r *rig) call(name string, args ...uint64) uint64 {
	r.t.Helper()
	door := byName[name]
	if door == nil {
		r.t.Fatalf("there is no function %s", name)
	}
	return boundary.Foreign(r.ctx, r.inv, door, nil, args)
}

// put makes a block that holds s, as a plug-in does.
func (r *rig) put(s string) uint64 {
	at := r.call("alloc", uint64(len(s)))
	for i := range len(s) {
		r.call("store_u8", at+uint64(i), uint64(s[i]))
	}
	return at
}

// get is what a block holds, as a plug-in reads it.
func (r *rig) get(at uint64) string {
	b := make([]byte, r.call("length", at))
	for i := range b {
		b[i] = byte(r.call("load_u8", at+uint64(i)))
	}
	return string(b)
}

// end is the outcome when the capability returns 0.
func (r *rig) end() boundary.Outcome { return r.inv.Conclude(r.ctx, r.inv.Settle(r.ctx, nil), 0) }

// over fails the test unless the invocation is over with a code.
func (r *rig) over(code abi.Code) {
	r.t.Helper()
	if o := r.inv.Over(); o == nil || o.Code != code {
		r.t.Errorf("the invocation is over with %v, not %s", o, code)
	}
}
