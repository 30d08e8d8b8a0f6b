package warm

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type everything struct {
	Bool    bool
	Int     int8
	Uint    uint16
	Float   float32
	Text    string
	Pointer *string
	Slice   []uint16
	Array   [2]int
	Map     map[string][]int
	Struct  struct{ Deep *[]bool }
	Again   *everything
	Any     any
	Time    time.Time
	hidden  int
}

// Nothing is empty in a sample but what a sample cannot know, and it can be written as JSON.
func TestSample(t *testing.T) {
	v := Sample(reflect.TypeFor[everything]())
	for i := range v.NumField() {
		f := v.Type().Field(i)
		empty := f.Name == "Any" || f.Name == "Time" || f.Name == "hidden"
		if v.Field(i).IsZero() != empty {
			t.Errorf("%s is %v", f.Name, v.Field(i))
		}
	}
	e := v.Interface().(everything)
	if len(e.Slice) == 0 || len(e.Map["sample"]) == 0 || !(*e.Struct.Deep)[0] || *e.Pointer == "" || e.hidden != 0 {
		t.Errorf("%+v", e)
	}
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
}

// Types that a capability has no use for do no harm either.
func TestSampleOfAnything(t *testing.T) {
	type ring struct{ Next []map[string]*ring }
	for _, typ := range []reflect.Type{
		reflect.TypeFor[ring](), reflect.TypeFor[func()](), reflect.TypeFor[chan int](), reflect.TypeFor[error](),
		reflect.TypeFor[complex128](), reflect.TypeFor[map[any]int](), reflect.TypeFor[map[[3]int]struct{}](),
		reflect.TypeFor[struct{}](), reflect.TypeFor[[0]int](), reflect.TypeFor[**int](), reflect.TypeFor[uintptr](),
	} {
		if got := Sample(typ).Type(); got != typ {
			t.Errorf("%v: %v", typ, got)
		}
	}
}

// Warming keeps none of what it made.
func TestRuntime(t *testing.T) {
	Runtime()
	if bytes.Load() != nil || pointers.Load() != nil {
		t.Error("what was made is kept")
	}
}
