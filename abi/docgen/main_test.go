package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/abi/tck"
)

func TestDocsAreCurrent(t *testing.T) {
	if err := run(filepath.Join("..", "..", "docs"), true); err != nil {
		t.Error(err)
	}
}

func TestCheckNoticesAChange(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, true); err == nil {
		t.Error("pages that are not there pass")
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Errorf("fresh pages do not pass: %v", err)
	}
	path := filepath.Join(dir, "codes.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(page, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil {
		t.Error("a changed page passes")
	}
}

func TestPagesNameEveryRow(t *testing.T) {
	page := string(pages()["abi.md"])
	for _, f := range abi.Functions() {
		if !strings.Contains(page, "\n### "+f.Name+"\n\n    "+f.Name+"(") {
			t.Errorf("abi.md has no section for %s", f.Name)
		}
	}
	for _, c := range tck.Cases() {
		if !strings.Contains(string(pages()["tck.md"]), "| `"+c.ID+"` |") {
			t.Errorf("tck.md does not name %s", c.ID)
		}
	}
	for _, f := range abi.Functions() {
		if _, section, _ := strings.Cut(page, "\n### "+f.Name+"\n"); !strings.Contains(before(section, "\n### "), "\n    "+f.Name+"(") || !strings.Contains(before(section, "\n### "), " → ") {
			t.Errorf("abi.md shows no call of %s", f.Name)
		}
	}
	for _, f := range abi.NativeWASI() {
		if !strings.Contains(page, "| `"+f.Name+"` |") {
			t.Errorf("abi.md does not name %s", f.Name)
		}
	}
	programs := string(pages()["wasi.md"])
	for _, f := range abi.WASIFunctions() {
		if !strings.Contains(programs, "\n| `"+f.Name+"` | ") || !strings.Contains(programs, f.Does) {
			t.Errorf("wasi.md does not name %s", f.Name)
		}
	}
	for _, l := range abi.LimitTable() {
		if !strings.Contains(page, "| `"+l.Name+"` |") {
			t.Errorf("abi.md does not name %s", l.Name)
		}
	}
	codes := string(pages()["codes.md"])
	for _, c := range abi.Codes() { // X47
		if !strings.Contains(codes, "| `"+string(c.Code)+"` |") {
			t.Errorf("codes.md does not name %s", c.Code)
		}
	}
}

func before(s, mark string) string {
	part, _, _ := strings.Cut(s, mark)
	return part
}
