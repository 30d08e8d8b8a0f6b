package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// wasmTypes is what the compiler makes of the Go types a //go:wasmimport declaration may have.
var wasmTypes = map[string][]abi.ValueType{
	"string": {abi.I32, abi.I32},
	"*byte":  {abi.I32},
	"uint32": {abi.I32},
	"int32":  {abi.I32},
	"int64":  {abi.I64},
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	}
	return "?"
}

// The SDK declares the whole host-function table, each row with the types the table gives it,
// and nothing else.
func TestDeclarationsAreTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "wasip1.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Doc == nil {
			continue
		}
		name, ok := strings.CutPrefix(f.Doc.List[len(f.Doc.List)-1].Text, "//go:wasmimport "+abi.Module+" ")
		if !ok {
			continue
		}
		row, known := abi.FunctionByName(name)
		if !known || declared[name] {
			t.Errorf("%s is not in the table, or declared twice", name)
			continue
		}
		declared[name] = true
		var got []abi.ValueType
		for _, field := range f.Type.Params.List {
			for range field.Names {
				got = append(got, wasmTypes[typeName(field.Type)]...)
			}
		}
		if len(got) != len(row.Params) {
			t.Errorf("%s takes %v, the table says %v", name, got, row.Params)
			continue
		}
		for i, p := range row.Params {
			if got[i] != p.Type {
				t.Errorf("%s: parameter %s is %s, the table says %s", name, p.Name, got[i], p.Type)
			}
		}
		if r := f.Type.Results; r == nil || len(r.List) != 1 || typeName(r.List[0].Type) != "int64" {
			t.Errorf("%s does not return one i64", name)
		}
	}
	for _, row := range abi.Functions() {
		if !declared[row.Name] {
			t.Errorf("the SDK has no %s", row.Name)
		}
	}
}

func TestWithoutAHost(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a host function answered outside a module, without a host")
		}
	}()
	Input()
}
