package invoke

import (
	"bytes"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/share"
)

// S10: judging an output is work of the organisation's whose guest made it: who had much judged is served
// after who had not.
func TestOutputIsJudgedOnItsOrganisationsAccount(t *testing.T) {
	output, err := schema.Compile([]byte(`{"type":"array","items":{"type":"integer","minimum":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	shares := share.New(share.Options{Tokens: 1})
	c := &attempt{p: &Pipeline{o: Options{Shares: shares}}, facts: &gate.Facts{Org: "busy"}, schemas: schema.Pair{Output: output}}
	judge := func(text []byte) *host.Outcome {
		o := &host.Outcome{Output: text}
		c.judgeOutput(o)
		return o
	}
	if o := judge([]byte(`[-1]`)); o.Err == nil || o.Output != nil {
		t.Fatal("an output that is none is let through")
	}
	for range 10 {
		if o := judge(append(append([]byte("[0"), bytes.Repeat([]byte(",1"), 100_000)...), ']')); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	var holder, busy, idle share.Turn
	holder.Begin(shares.Org("holder"))
	busy.Begin(shares.Org("busy"))
	idle.Begin(shares.Org("idle"))
	if holder.Claim() || !busy.Claim() || !idle.Claim() {
		t.Fatal("one token, one holder")
	}
	holder.Leave() // to idle, though busy came first
	got := make(chan string, 2)
	for name, turn := range map[string]*share.Turn{"busy": &busy, "idle": &idle} {
		go func() {
			turn.Await(t.Context())
			got <- name
			time.Sleep(time.Millisecond)
			turn.Leave()
		}()
	}
	if first := <-got; first != "idle" {
		t.Errorf("%s was served first", first)
	}
	<-got
}
