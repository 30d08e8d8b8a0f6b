package main

import "path/filepath"

// extism runs a plug-in of the SDK's own tests, which counts vowels.
func (d *demo) extism() error {
	dir, err := folder(d.ctx, "benchmarks", "github.com/extism/go-sdk")
	if err != nil {
		return err
	}
	manifest, err := d.foreign("vowels", map[string]any{
		"name": "vowels", "version": "1.0.0", "abi": "extism:host/env",
		"provides": []any{provide("vowels:text.count@1", "count_vowels", "owner", map[string]any{
			"inputEncoding": "text", "inputSchema": map[string]any{"type": "string"},
		})},
	})
	if err != nil {
		return err
	}
	if err := d.push("vowels", filepath.Join(dir, "wasm", "count_vowels.wasm"), "--manifest", manifest); err != nil {
		return err
	}
	if err := d.give("vowels:text.count@1"); err != nil {
		return err
	}
	for _, slug := range twoEnvironments {
		if _, err := d.allow(slug, "vowels:text.count@1", `"an ecotone"`, `"count":5`); err != nil {
			return err
		}
		if _, err := d.deny(slug, "vowels:text.count@1", `{"text":"an ecotone"}`, "INPUT_SCHEMA_VIOLATION"); err != nil {
			return err
		}
	}
	return nil
}
