// Command docgen writes the reference of the contract, docs/abi.md, docs/codes.md, docs/tck.md and docs/wasi.md, from
// the tables of package abi. With -check it writes nothing and fails when a page is not what
// the tables say.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", "docs", "the folder the pages are in")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	for name, page := range pages() {
		path := filepath.Join(dir, name)
		if !check {
			if err := os.WriteFile(path, page, 0o644); err != nil {
				return err
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, page) {
			return fmt.Errorf("%s is not what the tables say: run go run ./abi/docgen", path)
		}
	}
	return nil
}

func pages() map[string][]byte {
	return map[string][]byte{"abi.md": abiPage(), "codes.md": codesPage(), "tck.md": kitPage(), "wasi.md": wasiPage()}
}
