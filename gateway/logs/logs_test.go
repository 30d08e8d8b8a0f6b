package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const sentinel = "SENTINEL-of-a-secret"

type holder struct {
	Name  string
	Value Secret
}

// PF-F5: a secret is in no line, however it gets there, and neither is a token of the gateway's.
func TestNothingSecretIsWritten(t *testing.T) {
	const tok = "eco_s_01JD0000000000000000000000_abcdefghijklmnop"
	for _, format := range Formats() {
		var out bytes.Buffer
		log := New(&out, format, slog.LevelDebug)
		s := Secret(sentinel)
		log.Info("said", "secret", s, "pointer", &s, "held", holder{"a", s}, "list", []Secret{s}, "map", map[string]Secret{"a": s},
			"error", fmt.Errorf("with %v %s %q %+v %#v %x: %w", s, s, s, s, s, s, errors.New("inner")))
		log.With("secret", s).WithGroup("g").Warn("with "+tok, slog.Group("h", "t", tok, "e", errors.New(tok), "any", []string{tok}, "bytes", []byte("x")))
		log.Debug("json", "raw", json.RawMessage(`{"token":"`+tok+`"}`))
		if got := out.String(); strings.Contains(got, sentinel) || strings.Contains(got, tok) || strings.Contains(got, "abcdefghijklmnop") || !strings.Contains(got, Redacted) {
			t.Errorf("%s: %s", format, got)
		}
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%s: %d lines", format, n)
		}
	}
	raw, err := json.Marshal(holder{"a", sentinel})
	if err != nil || strings.Contains(string(raw), sentinel) {
		t.Errorf("%s %v", raw, err)
	}
	if Secret(sentinel).Reveal() != sentinel || Secret("").String() != "" {
		t.Error("what is revealed is another")
	}
}

// The level may change while the log is used.
func TestLevelChanges(t *testing.T) {
	var out bytes.Buffer
	level := &slog.LevelVar{}
	log := New(&out, "json", level)
	log.Debug("one")
	level.Set(slog.LevelDebug)
	log.Debug("two")
	if strings.Contains(out.String(), "one") || !strings.Contains(out.String(), "two") {
		t.Error(out.String())
	}
}
