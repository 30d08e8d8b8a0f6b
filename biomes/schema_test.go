package biomes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/schema"
)

// The gateway takes every schema: none is over its bounds or uses what it does not read.
func TestSchemas(t *testing.T) {
	for pattern, n := range map[string]int{"*/manifest.json": 7, "../testdata/guests/*/manifest.json": 6} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != n {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, name := range found {
			data, err := os.ReadFile(name)
			must(t, err)
			m, problems := abi.DecodeManifest(data)
			if problems != nil {
				t.Errorf("%s: %v", name, problems)
				continue
			}
			for _, d := range m.Provides {
				input, err := schema.Compile(d.InputSchema)
				if err != nil {
					t.Errorf("%s: input schema of %s: %v", name, d.Ref, err)
					continue
				}
				for _, example := range d.Examples {
					if err := input.Validate(example); err != nil {
						t.Errorf("%s: an example of %s: %v", name, d.Ref, err)
					}
				}
				if err := schema.Check(d.OutputSchema); err != nil {
					t.Errorf("%s: output schema of %s: %v", name, d.Ref, err)
				}
			}
		}
	}
}
