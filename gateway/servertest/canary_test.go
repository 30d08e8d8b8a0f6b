package servertest_test

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

const (
	plantRef = "test:canary.plant@1"
	spinRef  = "test:canary.spin@1"
	huntRef  = "test:canary.hunt@1"
)

// canary is a biome that leaves what it can, in all its memory and a global, and one that answers
// whether it finds anything. It has as many pages of memory as it is told.
func canary(pages uint32) []byte {
	const i32LtU, i32Or, i32Ne, i32Shl = 0x49, 0x72, 0x47, 0x74
	const from = 64
	b := w.New()
	output := b.Host("output")
	left := b.Global(w.I32, true, w.I32Const(5))
	end := w.Cat(w.MemorySize(), w.I32Const(16), w.Op(i32Shl))
	plant := w.Cat(
		w.I32Const(from), w.I32Const(0xc4), end, w.I32Const(from), w.Op(w.OpI32Sub), w.Op(0xfc, 0x0b, 0), // memory.fill
		w.I32Const(77), w.GlobalSet(left))
	say := func(digit byte) []byte {
		return w.Cat(w.I32Const(0), w.I32Const(int32(digit)), w.Store8(0), w.I32Const(0), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	}
	b.Capability("plant", plant, say('1'))
	b.Capability("spin", plant, w.Loop(w.Br(0)), w.I32Const(0))
	b.ExportFunc("hunt", b.Func(nil, w.Types(w.I32), w.Types(w.I32, w.I32),
		w.I32Const(from), w.LocalSet(0),
		w.Loop(
			w.LocalGet(1), w.LocalGet(0), w.Load32(0), w.Op(i32Or), w.LocalSet(1),
			w.LocalGet(0), w.I32Const(4), w.Op(w.OpI32Add), w.LocalTee(0), end, w.Op(i32LtU), w.BrIf(0)),
		w.LocalGet(1), w.GlobalGet(left), w.I32Const(5), w.Op(i32Ne), w.Op(i32Or),
		w.If(say('1'), w.Op(w.OpReturn)),
		say('0')))
	b.Memory(pages, pages).ExportMemory()
	b.Manifest(w.Manifest("canary", w.Provide(plantRef, "plant", abi.ReachOwner), w.Provide(spinRef, "spin", abi.ReachOwner), w.Provide(huntRef, "hunt", abi.ReachOwner)))
	return b.Bytes()
}

// S1, S9, S12: one user's invocation leaves canaries, in every tenth round one that is cut off in the
// middle; the next user's, on the same instances, and one of another organisation look
// everywhere and find nothing. A thousand rounds, each instance compared with its image when it is lent, in
// memories that are put back in either way.
func TestThousandRounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		pages  uint32
		rounds int
	}{{"large", 6, 1000}, {"small", 1, 250}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				c.rounds = 50
			}
			canaryRounds(t, canary(c.pages), c.rounds)
		})
	}
}

func canaryRounds(t *testing.T, module []byte, rounds int) {
	g := servertest.Start(t)
	g.Upload(module).Want(201)
	g.Install("canary", []string{"project"}, nil).Want(200)
	users := map[string]*servertest.Session{}
	for user, refs := range map[string][]string{"user:alice": {plantRef, spinRef}, "user:bob": {huntRef}} {
		for _, ref := range refs {
			g.Grant(user, ref, "project")
		}
		users[user] = g.Open(user, "project", nil)
	}
	g.Control("POST", "/v1/orgs", map[string]string{"id": "next-door"}).Want(201)
	g.Control("POST", "/v1/biomes?org=next-door", module, "Content-Type", "application/wasm").Want(201)
	g.Control("POST", "/v1/grants?org=next-door", map[string]any{"subject": "user:carol", "capability": huntRef, "environment": "environment:sandbox"}).Want(201)
	var opened struct{ Token string }
	g.Control("POST", "/v1/sessions?org=next-door", map[string]any{"subject": "user:carol", "environment": "environment:sandbox"}).Want(201).JSON(&opened)
	hunters := []*servertest.Session{users["user:bob"], {G: g, Token: opened.Token}}
	for n := range rounds {
		if n%10 == 9 {
			users["user:alice"].Invoke(spinRef, map[string]any{}, "Ecotone-Deadline-Ms", "5").Refused(abi.CodeDeadline)
		} else {
			users["user:alice"].Invoke(plantRef, map[string]any{}).Want(200)
		}
		for _, s := range hunters {
			if r := s.Invoke(huntRef, map[string]any{}).Want(200); string(r.Body) != "0" {
				t.Fatalf("round %d: something was found", n)
			}
		}
	}
}
