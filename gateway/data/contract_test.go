package data

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "rewrite the committed document")

// Every route says what it reads and answers, and nothing else is said.
func TestContractIsTheRouteTable(t *testing.T) {
	keys := map[string]bool{}
	for _, r := range routes {
		key := r.method + " " + r.pattern
		keys[key] = true
		if said := spoken[key]; said.id == "" || said.summary == "" || len(said.answers) == 0 {
			t.Errorf("%s says nothing of what it reads and answers", key)
		}
		if r.open != (r.pattern == documentPattern) {
			t.Errorf("%s is open: %v", key, r.open)
		}
	}
	for key := range spoken {
		if !keys[key] {
			t.Errorf("%s is no route", key)
		}
	}
	if len(Contract().Encode()) == 0 || len(Contract().Strict()) == 0 {
		t.Error("an empty document")
	}
}

// The committed document is the one that is served: clients are generated from it, and a change of the
// API shows in it.
func TestCommittedDocument(t *testing.T) {
	const path = "../../docs/openapi-data.json"
	served := Contract().Encode()
	if *update {
		if err := os.WriteFile(path, served, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, served) {
		t.Errorf("%s is not what is served (%v): make generate", path, err)
	}
}

// Somebody else's reader of OpenAPI takes the document.
func TestDocumentIsOpenAPI(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(Contract().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}
