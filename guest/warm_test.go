package guest_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/guest/guesttest"
)

// While something is warmed the host is not asked, and there need not be one.
func TestWarmRefuses(t *testing.T) {
	for name, call := range everyCall {
		if name == "error" || name == "output" {
			continue // a failure of these is the last thing an invocation says
		}
		runs := 0
		guest.Warm(func() {
			runs++
			if err := call(); !errors.Is(err, guest.EDENIED) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if runs < 2 {
			t.Errorf("%s was tried %d times", name, runs)
		}
	}
	guest.Warm(func() { guest.Logf(guest.LevelError, "unheard") })

	host, stop := guesttest.Start()
	defer stop()
	out := within(host, func() {
		guest.Warm(func() { _ = guest.Output([]byte("2")); panic("contained") })
		if err := guest.KV.Put("k", nil); err != nil {
			t.Errorf("after warming: %v", err)
		}
	})
	if out.Output != nil || out.Failure != nil {
		t.Errorf("warming left %s, %v", out.Output, out.Failure)
	}
}

// particular encodes and decodes itself, and does not like made-up values.
type particular struct{ N int }

var asked atomic.Int32

func (particular) MarshalJSON() ([]byte, error) { asked.Add(1); panic("not this one") }
func (*particular) UnmarshalJSON([]byte) error  { asked.Add(1); panic("nor that") }

func TestCapability(t *testing.T) {
	host, stop := guesttest.Start()
	defer stop()
	type in struct{ Names []string }
	runs := 0
	count := func(i in) (map[string]int, error) {
		runs++
		if len(i.Names) == 0 {
			return nil, guest.Failf("NAMES_MISSING", "none")
		}
		return map[string]int{"n": len(i.Names)}, nil
	}
	export := guest.Capability(count)
	if runs != 0 {
		t.Fatal("making the export's function ran the capability")
	}
	for _, input := range []string{`{"Names":["a","b"]}`, `{}`, `{"Nmaes":[]}`, `{} {}`, `null`} {
		got, want := host.Run(export, input), host.Run(func() int32 { return guest.Handle(count) }, input)
		if string(got.Output) != string(want.Output) || got.Code() != want.Code() {
			t.Errorf("%s: %s %s, and from Handle %s %s", input, got.Output, got.Code(), want.Output, want.Code())
		}
	}

	guest.Capability(func(particular) (*particular, error) { return nil, nil })
	if asked.Load() == 0 {
		t.Error("the codec was not warmed")
	}
}
