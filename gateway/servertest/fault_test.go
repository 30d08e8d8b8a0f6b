package servertest_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// PF-H12: an input that is larger than what is judged is refused, never cut and judged in part.
func TestInputIsJudgedWhole(t *testing.T) {
	g := servertest.Start(t)
	b := wasmtest.New()
	output := b.Host("output")
	b.Memory(1).ExportMemory().Data(0, []byte("1"))
	b.Capability("run", wasmtest.I32Const(0), wasmtest.I32Const(1), wasmtest.Call(output), wasmtest.Op(wasmtest.OpI32WrapI64))
	b.Manifest(wasmtest.Manifest("one", wasmtest.Provide("test:input.take@1", "run", abi.ReachOwner)))
	g.Upload(b.Bytes()).Want(201)
	g.Grant("user:alice", "test:input.take@1", "sandbox")
	s := g.Open("user:alice", "sandbox", nil)
	most := int(abi.LimitInputBytes.Info().Default)
	fits := []byte(fmt.Sprintf("%q", bytes.Repeat([]byte("a"), most-2)))
	s.Invoke("test:input.take@1", fits).Want(200)
	started := g.Server.Started()
	res := s.Invoke("test:input.take@1", append(fits, ' '))
	if code := res.Code(); code != abi.CodeInputLimit && code != abi.CodePayloadTooLarge {
		t.Errorf("one byte more: %d %s", res.Status, res.Body)
	}
	if g.Server.Started() != started {
		t.Error("a refused input started a guest")
	}
}

// PF-G4: what a failing invocation did before it failed is on record all the same.
func TestFailedInvocationIsOnRecord(t *testing.T) {
	g := servertest.Start(t)
	b := wasmtest.New()
	put := b.Host("kv_put")
	b.Memory(1).ExportMemory().Data(0, []byte("keyvalue"))
	b.Capability("run",
		wasmtest.I32Const(0), wasmtest.I32Const(3), wasmtest.I32Const(3), wasmtest.I32Const(5), wasmtest.Call(put),
		wasmtest.Op(wasmtest.OpDrop), wasmtest.Op(wasmtest.OpUnreachable))
	b.Manifest(wasmtest.Manifest("fail", wasmtest.Provide("test:state.fail@1", "run", abi.ReachOwner)))
	g.Upload(b.Bytes()).Want(201)
	g.Grant("user:alice", "test:state.fail@1", "sandbox")
	res := g.Open("user:alice", "sandbox", nil).Invoke("test:state.fail@1", map[string]int{}).Refused(abi.CodeGuestTrap)
	row := g.Row(res.Header.Get("Ecotone-Invocation"))
	ended, _ := row["ended"].(map[string]any)
	lines, _ := ended["lines"].([]any)
	if ended["code"] != string(abi.CodeGuestTrap) || len(lines) != 1 {
		t.Fatalf("the row says %v", row)
	}
	if line := lines[0].(map[string]any); line["function"] != "kv_put" || line["code"] != nil {
		t.Errorf("the line says %v", line)
	}
	if row["startedAt"] == nil {
		t.Error("the intent is not on record")
	}
}
