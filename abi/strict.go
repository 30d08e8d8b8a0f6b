package abi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StrictMaxDepth bounds the nesting of any JSON document the project reads.
const StrictMaxDepth = 64

// CheckJSON verifies that data is exactly one JSON value (RFC 8259) in valid UTF-8,
// nested at most maxDepth deep, without duplicate object keys (PF-A9: two decoders that
// disagree about which duplicate wins are two policies). A good document of ordinary shape costs
// one pass and no allocation, anything else allocates in proportion to len(data). What it
// returns is an [Error] with code [CodeInvalidJSON] and a pointer.
func CheckJSON(data []byte, maxDepth int) error {
	if !utf8.Valid(data) {
		return Errorf(CodeInvalidJSON, "the document is not valid UTF-8")
	}
	if (&scan{data: data, depth: maxDepth}).document() {
		return nil
	}
	return (&walker{maxDepth: maxDepth}).walk(data)
}

// DecodeStrict decodes exactly one JSON value into v (a non-nil pointer). Unknown
// fields, fields whose case differs, duplicate keys, nulls where a value is needed,
// trailing data and nesting past [StrictMaxDepth] are refused with
// [CodeInvalidJSON] or [CodeUnknownField] and a JSON pointer (RFC 6901); so are strings
// that a field's own type refuses, with the code that type gives.
func DecodeStrict(data []byte, v any) error { return decodeStrict(data, v, nil) }

// decodeStrict passes unknown fields to unknown and goes on, when it is given.
func decodeStrict(data []byte, v any, unknown func(*Error)) error {
	if !utf8.Valid(data) {
		return Errorf(CodeInvalidJSON, "the document is not valid UTF-8")
	}
	w := walker{maxDepth: StrictMaxDepth, root: reflect.TypeOf(v).Elem(), unknown: unknown}
	if err := w.walk(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return decodeError(err)
	}
	return nil
}

func decodeError(err error) error {
	var own *Error
	if AsErrorInto(err, &own) {
		return own
	}
	// The walk knew the place of everything it could refuse; what is left would be named by
	// fields of Go types.
	return Errorf(CodeInvalidJSON, "the document does not decode: %w", err)
}

// AsErrorInto finds an [Error] in err's chain and reports whether there was one.
func AsErrorInto(err error, target **Error) bool {
	for err != nil {
		if e, ok := err.(*Error); ok {
			*target = e
			return true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}

func jsonTypeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) || t == reflect.TypeFor[[]byte]() {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number in range"
	}
}

// fits reports whether a value that begins with tok can decode into t, and what it is when not.
func fits(t reflect.Type, tok json.Token) (found string, ok bool) {
	for t != nil && t.Kind() == reflect.Pointer && !t.Implements(jsonUnmarshaler) {
		t = t.Elem()
	}
	if t == nil || t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(jsonUnmarshaler) || t.Implements(jsonUnmarshaler) {
		return "", true
	}
	kind := t.Kind()
	text := reflect.PointerTo(t).Implements(textUnmarshaler)
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return "an object", !text && (kind == reflect.Struct || kind == reflect.Map)
		}
		return "an array", !text && t != reflect.TypeFor[[]byte]() && (kind == reflect.Slice || kind == reflect.Array)
	case string:
		return "a string", text || kind == reflect.String || t == reflect.TypeFor[[]byte]()
	case bool:
		return "a boolean", !text && kind == reflect.Bool
	case json.Number:
		if text || t == reflect.TypeFor[json.Number]() {
			return "a number", !text
		}
		var err error
		switch {
		case kind >= reflect.Int && kind <= reflect.Int64:
			_, err = strconv.ParseInt(tok.String(), 10, t.Bits())
		case kind >= reflect.Uint && kind <= reflect.Uint64:
			_, err = strconv.ParseUint(tok.String(), 10, t.Bits())
		case kind == reflect.Float32 || kind == reflect.Float64:
			_, err = strconv.ParseFloat(tok.String(), t.Bits())
		default:
			return "a number", false
		}
		return "another number", err == nil
	}
	return "", true
}

// frame is one open object or array of the walk.
type frame struct {
	object  bool
	wantKey bool
	keys    map[string]struct{}
	key     string
	index   int
	typ     reflect.Type // nil: anything goes below here
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// walker reads a document token by token. It is iterative: hostile nesting costs frames,
// never host stack.
type walker struct {
	maxDepth int
	root     reflect.Type // nil: any document
	unknown  func(*Error) // told of unknown fields; nil: the first one ends the walk
	stack    []frame
}

func (w *walker) walk(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	seen := false
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			if !seen || len(w.stack) > 0 {
				return w.refuse("the document ends too early")
			}
			return nil
		}
		if err != nil {
			return w.refuse("malformed JSON at byte %d: %w", dec.InputOffset(), err)
		}
		if len(w.stack) == 0 && seen {
			return w.refuse("trailing data after the document at byte %d", dec.InputOffset())
		}
		seen = true
		if err := w.token(tok); err != nil {
			return err
		}
	}
}

func (w *walker) refuse(format string, args ...any) *Error {
	return Errorf(CodeInvalidJSON, format, args...).At(pointer(w.stack))
}

// token takes one token. Its results are of type error, so that nil stays nil.
func (w *walker) token(tok json.Token) error {
	delim, isDelim := tok.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		w.stack = w.stack[:len(w.stack)-1]
		return nil
	}
	here := w.root
	if n := len(w.stack); n > 0 {
		top := &w.stack[n-1]
		if top.object && top.wantKey {
			return w.key(top, tok.(string))
		}
		here = top.child()
		if top.object {
			top.wantKey = true
		} else {
			top.index++
		}
	}
	if found, ok := fits(here, tok); !ok {
		return w.refuse("expected %s, found %s", jsonTypeName(here), found)
	}
	switch tok := tok.(type) {
	case json.Delim:
		if len(w.stack) >= w.maxDepth {
			return w.refuse("nested deeper than %d levels", w.maxDepth)
		}
		w.stack = append(w.stack, frame{object: tok == '{', wantKey: tok == '{', typ: settle(here), index: -1})
	case string:
		if err := checkText(here, tok); err != nil {
			return err.At(pointer(w.stack))
		}
	case nil:
		if here != nil && !nullable(here) {
			return w.refuse("null where %s is needed", jsonTypeName(here))
		}
	}
	return nil
}

func (w *walker) key(top *frame, key string) error {
	err := top.take(key)
	switch {
	case err == nil:
		return nil
	case err.Code == CodeUnknownField && w.unknown != nil:
		w.unknown(err.At(pointer(w.stack)))
		return nil
	}
	return err.At(pointer(w.stack))
}

// checkText asks the type that a string will decode into, while its place is still known.
func checkText(t reflect.Type, s string) *Error {
	if t == nil {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	v := reflect.New(t)
	if v.Type().Implements(jsonUnmarshaler) || !v.Type().Implements(textUnmarshaler) {
		return nil
	}
	err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
	if err == nil {
		return nil
	}
	var own *Error
	if AsErrorInto(err, &own) {
		return own
	}
	return Errorf(CodeInvalidJSON, "%s is not of the form this field has: %w", Quote(s), err)
}

// take records an object key and refuses a repeated or unknown one.
func (f *frame) take(key string) *Error {
	f.key, f.wantKey = key, false
	if f.keys == nil {
		f.keys = make(map[string]struct{})
	}
	if _, dup := f.keys[key]; dup {
		return Errorf(CodeInvalidJSON, "duplicate key %s", Quote(key))
	}
	f.keys[key] = struct{}{}
	if f.typ != nil && f.typ.Kind() == reflect.Struct {
		if _, ok := structField(f.typ, key); !ok {
			return Errorf(CodeUnknownField, "unknown field %s", Quote(key)).
				WithHint("the fields here are " + strings.Join(fieldNames(f.typ), ", "))
		}
	}
	return nil
}

// child is the Go type the next value below f decodes into, or nil.
func (f *frame) child() reflect.Type {
	if f.typ == nil {
		return nil
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		if t, ok := structField(f.typ, f.key); ok {
			return t
		}
	case reflect.Map, reflect.Slice, reflect.Array:
		return f.typ.Elem()
	}
	return nil
}

// settle strips pointers and stops at types that decode themselves.
func settle(t reflect.Type) reflect.Type {
	for t != nil {
		p := reflect.PointerTo(t)
		if p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if t != nil && t.Kind() == reflect.Interface {
		return nil
	}
	return t
}

func nullable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return true
	case reflect.Slice:
		return t == reflect.TypeFor[json.RawMessage]()
	}
	return false
}

// structField finds the field that a key decodes into. As in encoding/json, a field of
// the struct itself hides one of an embedded struct.
func structField(t reflect.Type, name string) (reflect.Type, bool) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			ft := f.Type
			for ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				embedded = append(embedded, ft)
				continue
			}
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		if tag == name {
			return f.Type, true
		}
	}
	for _, ft := range embedded {
		if inner, ok := structField(ft, name); ok {
			return inner, true
		}
	}
	return nil, false
}

func fieldNames(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			out = append(out, fieldNames(f.Type)...)
			continue
		}
		if f.IsExported() && tag != "-" {
			if tag == "" {
				tag = f.Name
			}
			out = append(out, tag)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pointer renders where the walk stands, for display: cut after 256 bytes, control and
// bidirectional characters replaced.
func pointer(stack []frame) string {
	var b strings.Builder
	for i := range stack {
		f := &stack[i]
		switch {
		case f.object && f.key != "":
			b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.key))
		case !f.object && f.index >= 0:
			b.WriteString("/" + strconv.Itoa(f.index))
		}
	}
	s := b.String()
	if len(s) > 256 {
		s = s[:256]
	}
	return strings.Map(func(r rune) rune {
		if controlRune(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
