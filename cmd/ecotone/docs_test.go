package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// docs/cli.md and docs/configuration.md name every command, flag and variable the program has, and no command it has not;
// every flag shown for a command is one of that command's.
func TestDocumentedCommands(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&CLI{}, kong.Name("ecotone"), nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		var words []string
		for n := leaf; n.Parent != nil; n = n.Parent {
			words = append(words, n.Name)
		}
		slices.Reverse(words)
		nodes[strings.Join(words, " ")] = leaf
	}
	documented := map[string]bool{}
	for _, row := range commandRows(string(raw)) {
		noun := ""
		for _, code := range row {
			command, n := find(nodes, noun, code)
			if n == nil {
				t.Errorf("`%s` is in docs/cli.md and is no command", code)
				continue
			}
			documented[command] = true
			noun, _, _ = strings.Cut(command, " ")
			for _, flag := range longFlag.FindAllStringSubmatch(code, -1) {
				if !hasFlag(n, flag[1]) {
					t.Errorf("%s has no flag --%s; docs/cli.md shows one", command, flag[1])
				}
			}
		}
	}
	for command := range nodes {
		if !documented[command] {
			t.Errorf("%s is not in docs/cli.md", command)
		}
	}
	raw = append(raw, page...)
	for command, n := range nodes {
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				if f.Name != "help" && !regexp.MustCompile("--"+f.Name+`\b[^-]|-`+string(f.Short)+" ").Match(raw) {
					t.Errorf("%s --%s is not in docs/cli.md", command, f.Name)
				}
				for _, env := range f.Envs {
					if !strings.Contains(string(raw), "`"+env+"`") {
						t.Errorf("%s of --%s is not in docs/cli.md", env, f.Name)
					}
				}
			}
		}
	}
	if len(nodes) < 30 {
		t.Errorf("only %d commands were found", len(nodes))
	}
}

var (
	inCode   = regexp.MustCompile("`([^`]+)`")
	longFlag = regexp.MustCompile(`--([a-z-]+)`)
)

// commandRows are the code spans of the first cells of the table of commands.
func commandRows(doc string) [][]string {
	_, table, _ := strings.Cut(doc, "| command | what it does |\n|---|---|\n")
	var out [][]string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cell, _, _ := strings.Cut(strings.ReplaceAll(line[1:], `\|`, "/"), "|")
		var spans []string
		for _, m := range inCode.FindAllStringSubmatch(cell, -1) {
			spans = append(spans, m[1])
		}
		out = append(out, spans)
	}
	return out
}

// find reads a span as a command, or as another verb of the noun before it.
func find(nodes map[string]*kong.Node, noun, code string) (string, *kong.Node) {
	words := strings.Fields(code)
	for _, try := range []string{noun + " " + words[0], words[0] + " " + strings.Join(words[1:min(2, len(words))], ""), words[0]} {
		if n := nodes[try]; n != nil {
			return try, n
		}
	}
	return "", nil
}

func hasFlag(n *kong.Node, name string) bool {
	for _, group := range n.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return true
			}
		}
	}
	return false
}
