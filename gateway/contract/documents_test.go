package contract_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/contract"
	"github.com/ecotone-dev/ecotone/gateway/data"
)

var update = flag.Bool("update", false, "rewrite the committed documents")

// documents are what the listeners serve, by the file that has each.
var documents = map[string]*contract.Document{
	"../../docs/openapi-control.json": admin.Contract(),
	"../../docs/openapi-data.json":    data.Contract(),
}

// The committed document is the one that is served: clients are generated from it, and a change of the
// API shows in it.
func TestCommittedDocument(t *testing.T) {
	for path, d := range documents {
		served := d.Encode()
		if *update {
			if err := os.WriteFile(path, served, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if committed, err := os.ReadFile(path); err != nil || len(served) == 0 || !bytes.Equal(committed, served) {
			t.Errorf("%s is not what is served (%v): make generate", path, err)
		}
		if len(d.Strict()) == 0 {
			t.Errorf("%s: an empty document", path)
		}
	}
}

// Somebody else's reader of OpenAPI takes the documents.
func TestDocumentIsOpenAPI(t *testing.T) {
	for path, d := range documents {
		doc, err := openapi3.NewLoader().LoadFromData(d.Encode())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
