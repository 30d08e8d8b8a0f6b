package main

import "path/filepath"

// extism runs plug-ins of the SDK's own tests.
func (d *demo) extism() error {
	dir, err := folder(d.ctx, "benchmarks", "github.com/extism/go-sdk")
	if err != nil {
		return err
	}
	vowels, err := d.foreign("vowels", map[string]any{
		"name": "vowels", "version": "1.0.0", "abi": "extism:host/env",
		"provides": []any{provide("vowels:text.count@1", "count_vowels", "owner", map[string]any{"inputEncoding": "text"})},
	})
	if err != nil {
		return err
	}
	if err := d.push("vowels", filepath.Join(dir, "wasm", "count_vowels.wasm"), "--manifest", vowels); err != nil {
		return err
	}
	if err := d.give("vowels:text.count@1"); err != nil {
		return err
	}
	for _, slug := range twoEnvironments {
		if _, err := d.allow(slug, "vowels:text.count@1", `"an ecotone"`, `"count":5`); err != nil {
			return err
		}
	}
	fetch, err := d.foreign("fetch", map[string]any{
		"name": "fetch", "version": "1.0.0", "abi": "extism:host/env",
		"provides": []any{provide("fetch:page.get@1", "http_get", "integration", nil)},
	})
	if err != nil {
		return err
	}
	if err := d.push("fetch", filepath.Join(dir, "wasm", "http.wasm"), "--manifest", fetch); err != nil {
		return err
	}
	if err := d.give("fetch:page.get@1"); err != nil {
		return err
	}
	d.say("one that asks the network: above sandbox's ceiling; in project, no endpoint admits what it asks for")
	if _, err := d.deny("sandbox", "fetch:page.get@1", `{"url":"https://example.com/"}`, "REACH_CEILING_EXCEEDED"); err != nil {
		return err
	}
	_, err = d.deny("project", "fetch:page.get@1", `{"url":"https://example.com/"}`, "GUEST_")
	return err
}
