package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ecotone-dev/ecotone/gateway/logs"
)

// setting is one row of the table.
type setting struct {
	Key     string   // in a file, and the flag without its dashes
	Env     string   // "": no variable
	Kind    kind     // of value
	Help    string   // whole sentences
	Default string   // as a flag would be given; "": none
	Enum    []string // what it may be; nil: anything of its kind
	Unit    string   // placeholder of the flag
	File    bool     // it may be in a file
	Reload  string   // "", value or content; see [Settings]
	value   reflect.Value
}

// kind is the kind of a setting's value: how a file writes it, and what its schema says.
type kind struct {
	Name   string // for people
	schema map[string]any
}

// integer is a number as the program keeps it.
var integer = map[string]any{"type": "integer", "minimum": math.MinInt64 + 1, "maximum": math.MaxInt64}

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string]():      {"text", map[string]any{"type": "string"}},
	reflect.TypeFor[logs.Secret](): {"secret", map[string]any{"type": "string"}},
	reflect.TypeFor[bool]():        {"true or false", map[string]any{"type": "boolean"}},
	reflect.TypeFor[int64]():       {"number", integer},
	reflect.TypeFor[time.Duration](): {"duration", map[string]any{
		"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`,
	}},
	reflect.TypeFor[Size](): {"size", map[string]any{"type": "string", "pattern": `^[0-9]+(KiB|MiB|GiB)$`}},
	reflect.TypeFor[[]string](): {"list of texts", map[string]any{
		"type": "array", "items": map[string]any{"type": "string"},
	}},
	reflect.TypeFor[map[string]int64](): {"numbers by name", map[string]any{
		"type": "object", "additionalProperties": integer,
	}},
}

// table is the settings with the values they have.
func (c *Settings) table() []setting {
	v := reflect.ValueOf(c).Elem()
	var out []setting
	for i := range v.NumField() {
		f := v.Type().Field(i)
		s := setting{
			Key: f.Tag.Get("name"), Kind: kinds[f.Type], Help: f.Tag.Get("help"), Default: f.Tag.Get("default"), Unit: f.Tag.Get("placeholder"),
			File: f.Tag.Get("only") == "", Reload: f.Tag.Get("reload"), value: v.Field(i),
		}
		if s.Key == "" {
			s.Key = dashed(f.Name)
		}
		if f.Tag.Get("only") != "flag" {
			s.Env = "ECOTONE_" + strings.ToUpper(strings.ReplaceAll(s.Key, "-", "_"))
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			s.Enum = strings.Split(enum, ",")
		}
		out = append(out, s)
	}
	return out
}

// dashed is the name of a field as a flag.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// set reports whether there is a value, a default included.
func (s *setting) set() bool {
	return !s.value.IsZero() || s.Default != "" || s.value.Kind() == reflect.Bool
}

// native is the value as a file has it.
func (s *setting) native() any {
	switch v := s.value.Interface().(type) {
	case time.Duration:
		return v.String()
	case Size:
		return v.String()
	case logs.Secret:
		return v.Reveal()
	default:
		return v
	}
}

// text is the value in one line of JSON, which is YAML too.
func (s *setting) text() string {
	raw, err := json.Marshal(s.native())
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(raw)
}

// nameVariables gives the flags of settings the variables that the table says, wherever they are.
func nameVariables() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		rows := map[string]setting{}
		for _, s := range (&Settings{}).table() {
			rows[s.Key] = s
		}
		for _, leaf := range k.Model.Leaves(false) {
			if !leaf.Target.FieldByName("Settings").IsValid() {
				continue
			}
			for _, f := range leaf.Flags {
				if s, ok := rows[f.Name]; ok && s.Env != "" {
					f.Envs = []string{s.Env}
					f.Tag.Envs = f.Envs
				}
			}
		}
		return nil
	})
}
