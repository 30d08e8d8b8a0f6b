package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const sentinel = "SENTINEL-0123456789abcdef"

// PF-F5, PF-F7: whatever is printed, logged or encoded around a value, it is not there.
func TestValueIsRedacted(t *testing.T) {
	v := NewValue([]byte(sentinel))
	type open struct{ V Value }
	type closed struct {
		name string
		v    Value
		p    *Value
		c    *Credential
	}
	things := []any{
		v, &v,
		[]Value{v},
		map[string]Value{"a": v},
		open{v},
		&open{v},
		closed{"n", v, &v, &Credential{value: v, scrub: newScrubber(v.Reveal())}},
		&closed{"n", v, &v, nil}, &Credential{value: v, prefix: "Bearer ", scrub: newScrubber(v.Reveal())},
		fmt.Errorf("wrapped: %v", v), errors.Join(fmt.Errorf("%s", v)),
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%10.3s"} {
		for _, thing := range things {
			fmt.Fprintf(&out, verb+"\n", thing)
		}
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		for _, thing := range things {
			slog.New(h).Info("used", "thing", thing, slog.Group("g", "v", v))
		}
	}
	for _, thing := range things {
		b, _ := json.Marshal(thing)
		out.Write(b)
	}
	text := strings.ToLower(out.String())
	lower := []byte(strings.ToLower(sentinel))
	for _, form := range []string{sentinel, fmt.Sprint(lower), fmt.Sprintf("%x", lower), fmt.Sprintf("%x", sentinel), fmt.Sprint([]byte(sentinel)), strings.TrimPrefix(fmt.Sprintf("%#v", []byte(sentinel)), "[]byte"), strings.TrimPrefix(fmt.Sprintf("%#v", lower), "[]byte")} {
		if strings.Contains(text, strings.ToLower(form)) {
			t.Errorf("shown as %s", form)
		}
	}
	if !strings.Contains(text, redacted) {
		t.Error("nothing says that something was left out")
	}
}

func TestValueWipe(t *testing.T) {
	v := NewValue([]byte(sentinel))
	b := v.Reveal()
	v.Wipe()
	if !bytes.Equal(b, make([]byte, len(sentinel))) || v.Len() != 0 {
		t.Errorf("%q", b)
	}
	Value{}.Wipe()
}

func TestValueFromJSON(t *testing.T) {
	var doc struct {
		Value Value `json:"value"`
	}
	if err := json.Unmarshal([]byte(`{"value":"`+sentinel+`"}`), &doc); err != nil || string(doc.Value.Reveal()) != sentinel {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"value":{"a":"`+sentinel+`"}}`), &doc); err == nil || strings.Contains(err.Error(), sentinel) {
		t.Fatalf("%v", err)
	}
}
