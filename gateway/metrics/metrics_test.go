package metrics

import (
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

func receipt() *boundary.Receipt {
	r := &boundary.Receipt{
		Took: time.Millisecond, Fuel: 5, Logs: []boundary.LogRecord{{Text: "said"}},
		Lines: []boundary.Line{{Function: "kv_get", Took: time.Microsecond}, {Function: "kv_put", Code: abi.CodeForbidden}, {Function: "nobody's"}},
	}
	r.Unlisted[0] = 3
	return r
}

// Counting is on the way of every invocation: it allocates nothing.
func TestCountingAllocatesNothing(t *testing.T) {
	m, r := New(), receipt()
	if n := testing.AllocsPerRun(100, func() {
		m.Ran(r, true)
		m.Answered("", time.Millisecond)
		m.Answered(abi.CodeMissingGrant, time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// PF-D22: there are as many series as there were, whatever is counted.
func TestSeriesAreFixed(t *testing.T) {
	m := New()
	series := func() (n int) {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.Metric)
		}
		return n
	}
	before := series()
	for _, row := range abi.Functions() {
		m.Ran(&boundary.Receipt{Lines: []boundary.Line{{Function: row.Name}, {Function: row.Name, Code: abi.CodeForbidden}, {Function: row.Name + "x"}}}, true)
	}
	for _, row := range abi.Codes() {
		m.Answered(row.Code, 0)
	}
	m.Answered("SOMETHING_ELSE", 0)
	if after := series(); before != after || before < 100 {
		t.Errorf("%d series, then %d", before, after)
	}
}

// The rows of the table are those of the receipt.
func TestUnlistedAreCountedByRow(t *testing.T) {
	m := New()
	if len(m.ordered) > len(boundary.Counts{}) {
		t.Fatal("there are more functions than counts")
	}
	m.Ran(receipt(), true)
	m.Ran(receipt(), false) // S6: of what was withheld only that it ran
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "ecotone_host_calls_total" {
			for _, s := range f.Metric {
				got[s.Label[0].GetValue()+" "+s.Label[1].GetValue()] = s.Counter.GetValue()
			}
		}
	}
	for name, want := range map[string]float64{abi.Functions()[0].Name + " done": 3, "kv_get done": 1, "kv_put refused": 1, "kv_put done": 0} {
		if v, there := got[name]; !there || v != want {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func BenchmarkCounting(b *testing.B) {
	m, r := New(), receipt()
	b.ReportAllocs()
	for b.Loop() {
		m.Ran(r, true)
		m.Answered("", time.Millisecond)
	}
}
