package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// What the documents show is what results/latest.json has.
func TestDocumentsShowTheLastRun(t *testing.T) {
	if err := publishAll("..", "results", true); err != nil {
		t.Error(err)
	}
}

func TestPublish(t *testing.T) {
	root, results := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		if err := os.WriteFile(filepath.Join(root, d.path), []byte("before\n"+blockBegin+"old"+blockEnd+"after\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown := func() string {
		raw, err := os.ReadFile(filepath.Join(root, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		if s := string(raw); !strings.HasPrefix(s, "before\n") || !strings.HasSuffix(s, "after\n") {
			t.Errorf("what is around the block changed: %s", s)
		}
		return string(raw)
	}
	publish := func(want string) {
		t.Helper()
		if publishAll(root, results, true) == nil {
			t.Error("stale documents pass")
		}
		if err := publishAll(root, results, false); err != nil {
			t.Fatal(err)
		}
		if err := publishAll(root, results, true); err != nil {
			t.Error(err)
		}
		if !strings.Contains(shown(), want) {
			t.Errorf("no %q in %s", want, shown())
		}
	}
	publish(noRun)
	run := func(quick bool, value float64) {
		t.Helper()
		r := report.New(quick)
		r.Add(report.Measured("g", "a row", "ns", []float64{value}).Against("it", "times", []float64{1}).Aim(atMost(2)))
		if err := r.Write(results); err != nil {
			t.Fatal(err)
		}
	}
	run(false, 123)
	publish("| a row | 123 ns (once) | 1 times it | ≤ 2 | reached |")
	run(true, 456)
	publish(noRun)
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(blockEnd+blockBegin), 0o644); err != nil {
		t.Fatal(err)
	}
	if publishAll(root, results, false) == nil {
		t.Error("a document without a block passes")
	}
}
