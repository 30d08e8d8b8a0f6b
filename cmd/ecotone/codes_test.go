package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// X47: every code of the catalogue is used by the program and named by a test.
func TestEveryCodeIsReached(t *testing.T) {
	names := constantNames(t)
	used, tested := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && len(e.Name()) > 2 {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, filepath.Join("abi", "code.go")) {
			return nil
		}
		into := used
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "hostile") {
			into = tested
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				into[n.Name] = true
			case *ast.BasicLit:
				into[strings.Trim(n.Value, "\"`")] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range abi.Codes() {
		name := names[string(row.Code)]
		if name == "" {
			t.Errorf("%s has no constant", row.Code)
		}
		if !used[name] {
			t.Errorf("%s is in the catalogue and nothing answers with it", row.Code)
		}
		if !tested[name] && !tested[string(row.Code)] {
			t.Errorf("%s is reached by no test", row.Code)
		}
	}
}

// constantNames maps codes to the names of their constants.
func constantNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../abi/code.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && strings.HasPrefix(spec.Names[0].Name, "Code") {
				out[strings.Trim(lit.Value, `"`)] = spec.Names[0].Name
			}
		}
		return true
	})
	return out
}
