package contract

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Object is a JSON object of a document.
type Object = map[string]any

// Known describes types that write themselves, and closed vocabularies. A value is a JSON Schema,
// a [Named] one, or another [reflect.Type], whose description it has.
type Known map[reflect.Type]any

// Named is a schema that a document has once, under a name.
type Named struct {
	Name   string
	Schema Object
}

// Words is the description of a closed vocabulary.
func Words[T ~string](words ...T) Object {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return Object{"type": "string", "enum": out}
}

// Text describes a string, said in one sentence.
func Text(description string) Object { return Object{"type": "string", "description": description} }

// schemas collects the named types of one document. It is for one goroutine.
type schemas struct {
	known  Known
	made   Object                  // by name
	types  map[string]reflect.Type // the type a name was given to
	strict bool                    // objects have no other members
}

func newSchemas(known Known, strict bool) *schemas {
	return &schemas{known: known, made: Object{}, types: map[string]reflect.Type{}, strict: strict}
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	jsonTypes = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
)

// of describes a type. closed is that of requests, whose decoders refuse members they do not
// know; without are members of the outermost object that may be absent whatever their tags say.
func (s *schemas) of(t reflect.Type, closed bool, without ...string) Object {
	if k, known := s.known[t]; known {
		switch k := k.(type) {
		case reflect.Type:
			return s.of(k, closed, without...)
		case Named:
			s.made[k.Name], s.types[k.Name] = k.Schema, t
			return Object{"$ref": "#/components/schemas/" + k.Name}
		default:
			return k.(Object)
		}
	}
	switch {
	case t == timeType:
		return Object{"type": "string", "format": "date-time"}
	case t == rawType:
		return Object{} // any JSON value
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem(), closed, without...)
	}
	for _, writesItself := range jsonTypes {
		if t.Implements(writesItself) || reflect.PointerTo(t).Implements(writesItself) {
			panic(fmt.Sprintf("contract: %s writes itself, and nothing says how", t))
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return Object{"type": "number"}
	case reflect.Interface:
		return Object{}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return Object{"type": "string", "contentEncoding": "base64"}
		}
		return Object{"type": "array", "items": s.of(t.Elem(), closed)}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": s.of(t.Elem(), closed)}
	case reflect.Struct:
		return s.named(t, closed, without)
	}
	panic(fmt.Sprintf("contract: %s is nothing JSON has", t))
}

// named describes a struct once, under its name.
func (s *schemas) named(t reflect.Type, closed bool, without []string) Object {
	name := s.name(t, closed)
	ref := Object{"$ref": "#/components/schemas/" + name}
	if was, there := s.types[name]; there {
		if was != t {
			panic(fmt.Sprintf("contract: %s and %s are both called %s", was, t, name))
		}
		return ref
	}
	s.types[name] = t
	s.made[name] = Object{} // while its members are described, which may lead back here
	properties, required := Object{}, []string{}
	s.members(t, closed, properties, &required)
	out := Object{"type": "object", "properties": properties}
	required = slices.DeleteFunc(required, func(m string) bool { return slices.Contains(without, m) })
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	if closed || s.strict {
		out["additionalProperties"] = false
	}
	s.made[name] = out
	return ref
}

// members adds what encoding/json writes of a struct. An outer member hides one of an embedded
// struct, as in Go.
func (s *schemas) members(t reflect.Type, closed bool, properties Object, required *[]string) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
			continue
		case tag == "-" || !f.IsExported():
			continue
		case tag == "":
			tag = f.Name
		}
		if _, hidden := properties[tag]; hidden {
			continue
		}
		properties[tag] = s.of(f.Type, closed)
		if !strings.Contains(options, "omit") {
			*required = append(*required, tag)
		}
	}
	for _, e := range embedded {
		if other, isType := s.known[e].(reflect.Type); isType {
			e = other
		}
		s.members(e, closed, properties, required)
	}
}

// name is what a type is called in a document: its own name, with its package's before it when
// another type has it, and ListOfThing for a list[Thing]. What is read is closed, what is answered is
// not, so that a type that is both has two descriptions.
func (s *schemas) name(t reflect.Type, closed bool) string {
	name, suffix := plainName(t.Name()), ""
	if closed && !strings.HasSuffix(name, "Request") && !strings.HasSuffix(name, "Body") {
		suffix = "Input"
	}
	if was, there := s.types[name+suffix]; there && was != t {
		pkg := t.PkgPath()
		name = capital(pkg[strings.LastIndexByte(pkg, '/')+1:]) + name
	}
	return name + suffix
}

func plainName(name string) string {
	base, argument, generic := strings.Cut(name, "[")
	if !generic {
		return capital(base)
	}
	argument = strings.TrimSuffix(argument, "]")
	argument = argument[strings.LastIndexByte(argument, '.')+1:]
	return capital(base) + "Of" + capital(argument)
}

func capital(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}
