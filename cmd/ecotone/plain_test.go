package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/quick"
)

// S17: what a guest or a manifest says does not move the cursor, set a title or turn text around.
func TestPlainWriter(t *testing.T) {
	for in, want := range map[string]string{
		"line\n\tcell — ü 漢 🌿":  "line\n\tcell — ü 漢 🌿",
		"\x1b[2Jgone\r":         `\u001b[2Jgone\u000d`,
		"\u009b31m":             `\u009b31m`,
		"allow\u202eyned":       `allow\u202eyned`,
		"zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`,
		"tag\U000e0041":         `tag\udb40\udc41`,
		"two\u2028lines":        `two\u2028lines`,
		"raw \x9b byte":         "raw \ufffd byte",
	} {
		var whole, bytewise bytes.Buffer
		io.WriteString(&plainWriter{to: &whole}, in)
		w := &plainWriter{to: &bytewise}
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if whole.String() != want || bytewise.String() != want {
			t.Errorf("%q is printed as %q, byte by byte as %q", in, whole.String(), bytewise.String())
		}
	}
	same := func(s string) bool {
		raw, _ := json.Marshal(s)
		var out bytes.Buffer
		(&plainWriter{to: &out}).Write(raw)
		var back, kept string
		return json.Unmarshal(raw, &kept) == nil && json.Unmarshal(out.Bytes(), &back) == nil && back == kept
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}
