package wasi_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/wasi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ram is a guest's memory.
type ram []byte

func (m ram) Read(off, n uint32) ([]byte, bool) {
	if uint64(off)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[off : uint64(off)+uint64(n)], true
}

func (m ram) Write(off uint32, b []byte) bool {
	view, ok := m.Read(off, uint32(len(b)))
	if ok {
		copy(view, b)
	}
	return ok
}

func byName(doors []boundary.Door) map[string]*boundary.Door {
	m := map[string]*boundary.Door{}
	for i := range doors {
		m[doors[i].Name] = &doors[i]
	}
	return m
}

var native, bare, all = byName(wasi.Native()), byName(wasi.Bare()), byName(wasi.Full())

// rig is a running invocation and its guest's memory.
type rig struct {
	t     testing.TB
	inv   *boundary.Invocation
	mem   ram
	doors map[string]*boundary.Door
	ctx   context.Context
}

func spec() authority.Spec {
	return authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: "acme", Space: "lab", Session: "s", Biome: "probe", Subject: "user:ada",
		Capability: "probe:self.run@1", Export: "run", Reach: abi.ReachPlatform,
		Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated, Limits: abi.DefaultLimits(),
	}
}

func newRig(t testing.TB, change ...func(*authority.Spec)) *rig {
	return rigOf(t, native, "{}", boundary.Services{}, change...)
}

func rigOf(t testing.TB, doors map[string]*boundary.Door, input string, services boundary.Services, change ...func(*authority.Spec)) *rig {
	t.Helper()
	s := spec()
	for _, f := range change {
		f(&s)
	}
	r := &rig{t: t, mem: make(ram, 1<<16), doors: doors, ctx: context.Background()}
	r.inv = boundary.New(boundary.Spec{
		Authority: authority.New(s, func() *abi.Error { return nil }), Input: []byte(input), Services: services,
	})
	r.inv.Enter(boundary.PhaseInitialize)
	r.inv.Enter(boundary.PhaseRun)
	return r
}

func (r *rig) wasi(name string, args ...uint64) int32 {
	r.t.Helper()
	d := r.doors[name]
	if d == nil {
		r.t.Fatalf("there is no %s", name)
	}
	return int32(boundary.Foreign(r.ctx, r.inv, d, r.mem, args))
}

// call makes a host call. Strings go to guest memory and become (pointer, length).
func (r *rig) call(name string, args ...any) int64 {
	r.t.Helper()
	fn, ok := abi.FunctionByName(name)
	if !ok {
		r.t.Fatalf("no host function %s", name)
	}
	var raw []uint64
	at := 0
	for _, a := range args {
		switch a := a.(type) {
		case string:
			copy(r.mem[at:], a)
			raw = append(raw, uint64(at), uint64(len(a)))
			at += len(a)
		case int:
			raw = append(raw, uint64(a))
		}
	}
	return boundary.Call(r.ctx, r.inv, fn, r.mem, raw)
}

func (r *rig) ok(got int64) {
	r.t.Helper()
	if got < 0 {
		r.t.Fatalf("got %s", abi.Errno(-got))
	}
}

func (r *rig) conclude() boundary.Outcome { return r.inv.Conclude(r.ctx, nil, 0) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(r.mem[at:]) }
func (r *rig) u64(at uint32) uint64 { return binary.LittleEndian.Uint64(r.mem[at:]) }
func (r *rig) set32(at, v uint32)   { binary.LittleEndian.PutUint32(r.mem[at:], v) }
func (r *rig) set64(at uint32, v uint64) {
	binary.LittleEndian.PutUint64(r.mem[at:], v)
}
