package boundary

import (
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// H1: what has a row has a handler, and nothing else has.
func TestHandlersAreTheTable(t *testing.T) {
	left := make(map[string]bool)
	for name := range handlers {
		left[name] = true
	}
	for i := range abi.Functions() {
		fn := &abi.Functions()[i]
		h := handlers[fn.Name]
		if h == nil {
			t.Errorf("%s has no handler", fn.Name)
			continue
		}
		delete(left, fn.Name)
		pairs := 0
		for i, pair := range h.pairs {
			if pair != (isPointer(fn.Params[i].Name) && i+1 < len(fn.Params)) {
				t.Errorf("%s: parameter %d begins a pair: %t", fn.Name, i, pair)
			}
			if pair {
				pairs++
			}
		}
		if len(h.data) != pairs || pairs > maxArguments || len(fn.Params)-2*pairs > maxArguments {
			t.Errorf("%s copies %d arguments of %d parameters and bounds %d", fn.Name, pairs, len(fn.Params), len(h.data))
		}
		if h.index != i || i >= maxFunctions || handlerOf(fn) != h {
			t.Errorf("%s is row %d and has the index %d", fn.Name, i, h.index)
		}
		if h.act == nil {
			t.Errorf("%s does nothing", fn.Name)
		}
		if touches := fn.Group != abi.GroupCall || fn.Name == "input"; h.fills != touches {
			t.Errorf("%s: fills is %t", fn.Name, h.fills)
		}
		if fn.Group != abi.GroupCall && h.check == nil {
			t.Errorf("%s does not name its target before it acts", fn.Name)
		}
	}
	for name := range left {
		t.Errorf("%s has a handler and no row", name)
	}
}

func isPointer(name string) bool { return strings.HasSuffix(name, "_ptr") }

// A function without a target has a line only when it is refused; all others always have one.
func TestEveryEffectHasATarget(t *testing.T) {
	for _, fn := range abi.Functions() {
		if (fn.Effect != abi.EffectNone) != (fn.Receipt != "") {
			t.Errorf("%s: effect %s, receipt %q", fn.Name, fn.Effect, fn.Receipt)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("a\nb\x1b[31m\xff\u202e\u2028\u0085"), 20)
	f.Add([]byte("plain"), 3)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		most = max(0, min(most, 1<<12))
		text, cut := plain(in, most)
		if len(text) > most {
			t.Fatalf("%d bytes, at most %d", len(text), most)
		}
		again, cutAgain := plain([]byte(text), most)
		if again != text || cutAgain {
			t.Fatalf("%q is not plain: %q", text, again)
		}
		if whole, _ := plain(in, 1<<20); !cut && whole != text {
			t.Fatalf("cut without saying so: %q of %q", text, whole)
		}
	})
}
