package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// The documents have a block between two lines, which nobody writes by hand.
const (
	blockBegin = "<!-- benchmarks: written by `make bench` -->\n"
	blockEnd   = "<!-- /benchmarks -->\n"
	noRun      = "No full run has been recorded here yet: `make bench` records one.\n"
)

// documents are those with a block, and what it holds.
var documents = []struct {
	path  string
	block func(*report.Report) string
}{
	{"README.md", func(r *report.Report) string { return r.Summary("benchmarks/results/") }},
	{"docs/benchmarks.md", func(r *report.Report) string {
		return fmt.Sprintf("The last full run, on %s, was linked with:\n\n%s", r.Started.Format("2006-01-02"), r.Versions())
	}},
}

// publishAll brings the documents below root to the last full run in results, or fails when they
// are not there already. A quick run is not published.
func publishAll(root, results string, check bool) error {
	r, err := report.Read(results)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var stale error
	for _, d := range documents {
		block := noRun
		if r != nil && r.Mode == "full" {
			block = d.block(r)
		}
		path := filepath.Join(root, d.path)
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		now, err := withBlock(old, block)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", d.path, err)
		case bytes.Equal(old, now):
		case check:
			stale = errors.Join(stale, fmt.Errorf("%s does not show what benchmarks/results has: make bench brings it up to date", d.path))
		default:
			if err := os.WriteFile(path, now, 0o644); err != nil {
				return err
			}
		}
	}
	return stale
}

// withBlock is a document with another block.
func withBlock(document []byte, block string) ([]byte, error) {
	head, rest, ok := bytes.Cut(document, []byte(blockBegin))
	_, foot, closed := bytes.Cut(rest, []byte(blockEnd))
	if !ok || !closed {
		return nil, errors.New("there is no block for the benchmarks in it")
	}
	return bytes.Join([][]byte{head, []byte(blockBegin), []byte("\n"), []byte(block), []byte("\n"), []byte(blockEnd), foot}, nil), nil
}
