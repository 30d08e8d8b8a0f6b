package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// maxSettings bounds a file of settings, in bytes.
const maxSettings = 1 << 20

// foreign are variables that begin as ours do and are no setting and no client's flag.
var foreign = []string{
	"ECOTONE_VERIFY", // compare each instance with its image
}

// BeforeResolve looks at the variables and reads the file, between the command line and what a flag is by
// default. What is unknown is refused: a setting with a typing error would otherwise be one that is not in force.
func (c *Settings) BeforeResolve(k *kong.Kong, ctx *kong.Context) error {
	if err := unknownVariables(k.Model, os.Environ()); err != nil {
		return err
	}
	for _, f := range ctx.Flags() {
		if f.Name != "config" {
			continue
		}
		name, _ := ctx.FlagValue(f).(string)
		if name == "" {
			return nil
		}
		values, err := readSettings(name)
		if err != nil {
			return err
		}
		ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
			if fromVariable(f) {
				return nil, nil
			}
			return values[f.Name], nil
		}))
	}
	return nil
}

// fromVariable reports whether a variable gives the flag's value, unless the command line does.
func fromVariable(f *kong.Flag) bool {
	return slices.ContainsFunc(f.Envs, func(name string) bool { _, there := os.LookupEnv(name); return there })
}

// unknownVariables finds a variable that looks like a setting and is none, or is one and says nothing.
func unknownVariables(model *kong.Application, environ []string) error {
	known, settings := map[string]bool{}, map[string]bool{}
	for _, s := range (&Settings{}).table() {
		settings[s.Env] = true
	}
	for _, name := range foreign {
		known[name] = true
	}
	for _, leaf := range model.Leaves(false) {
		for _, group := range leaf.AllFlags(false) {
			for _, f := range group {
				for _, name := range f.Envs {
					known[name] = true
				}
			}
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" && settings[name] {
			return fmt.Errorf("the variable %s is empty: leave it out, or let it say something", name)
		}
		if strings.HasPrefix(name, "ECOTONE_") && !known[name] {
			return fmt.Errorf("the variable %s is no setting; in Kubernetes a service of this name makes such variables, and enableServiceLinks: false ends that", name)
		}
	}
	return nil
}

// readSettings reads a file into values that flags take.
func readSettings(name string) (map[string]any, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSettings {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxSettings)
	}
	values, err := parseSettings(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return values, nil
}

// parseSettings takes one YAML document, of which JSON is a form: a mapping of keys of the table to values of
// their kind, each once, without aliases.
func parseSettings(raw []byte) (map[string]any, error) {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // nothing is said
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document")
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: the settings are one mapping of keys to values", top.Line)
	}
	rows := map[string]setting{}
	for _, s := range (&Settings{}).table() {
		rows[s.Key] = s
	}
	out := map[string]any{}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		row, known := rows[key.Value]
		switch {
		case !known || key.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: %q is no setting", key.Line, key.Value)
		case !row.File:
			return nil, fmt.Errorf("line %d: %s cannot be in a file", key.Line, key.Value)
		case out[key.Value] != nil:
			return nil, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
		}
		v, ok := row.take(value)
		if !ok {
			return nil, fmt.Errorf("line %d: %s is not a %s", value.Line, key.Value, row.Kind.Name)
		}
		out[key.Value] = v
	}
	return out, nil
}

// take reads a node as a value of the setting's kind, and nothing as a value of another: a number is no
// text, and text no number.
func (s *setting) take(n *yaml.Node) (any, bool) {
	scalar := func(n *yaml.Node, tag string) bool { return n.Kind == yaml.ScalarNode && n.Tag == tag }
	whole := func(n *yaml.Node) (v int64, ok bool) {
		return v, scalar(n, "!!int") && n.Decode(&v) == nil && v > math.MinInt64
	}
	switch s.value.Interface().(type) {
	case bool:
		var v bool
		ok := scalar(n, "!!bool") && n.Decode(&v) == nil
		return fmt.Sprint(v), ok
	case int64:
		v, ok := whole(n)
		return fmt.Sprint(v), ok
	case []string:
		var out []any
		for _, item := range n.Content {
			if !scalar(item, "!!str") {
				return nil, false
			}
			out = append(out, item.Value)
		}
		return out, n.Kind == yaml.SequenceNode
	case map[string]int64:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := whole(n.Content[i+1])
			if !ok || !scalar(n.Content[i], "!!str") || out[n.Content[i].Value] != nil {
				return nil, false
			}
			out[n.Content[i].Value] = v
		}
		return out, n.Kind == yaml.MappingNode
	}
	return n.Value, scalar(n, "!!str")
}
