package admin

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
	routes, ids := map[string]bool{}, map[string]bool{}
	for _, rt := range routeTable {
		key := rt.method + " " + rt.path
		routes[key] = true
		said, there := spoken[key]
		switch {
		case !there || said.id == "" || ids[said.id]:
			t.Errorf("%s says nothing of what it reads and answers, or has no name of its own: %q", key, said.id)
		case (said.in != nil) != (rt.body == bodyJSON):
			t.Errorf("%s: the body in the table is %d, and it reads a %T", key, rt.body, said.in)
		case (said.out == nil) != rt.empty:
			t.Errorf("%s answers a %T", key, said.out)
		}
		ids[said.id] = true
	}
	for key := range spoken {
		if !routes[key] {
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
	const path = "../../docs/openapi-control.json"
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
