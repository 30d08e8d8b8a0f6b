package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// canonical writes a document in the one form of RFC 8785 (JCS), so that anybody who has the
// document can make its digest: no white space, members in order of their names, and of all escapes
// in strings only those that JSON demands. Numbers are refused: documents here have none, and
// their form is the difficult part of the rule.
func canonical(document any) ([]byte, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return appendCanonical(nil, v)
}

func appendCanonical(out []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return fmt.Append(out, v), nil
	case string:
		return appendText(out, v), nil
	case []any:
		out = append(out, '[')
		for i, member := range v {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendCanonical(out, member); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case map[string]any:
		out = append(out, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, name), ':')
			if out, err = appendCanonical(out, v[name]); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
	return nil, fmt.Errorf("a %T has no canonical form here", v)
}

// appendText writes a string as RFC 8785, 3.2.2.2 has it.
func appendText(out []byte, s string) []byte {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	out = append(out, '"')
	for _, r := range s {
		if e, ok := short[r]; ok {
			out = append(out, e...)
			continue
		}
		if r < ' ' {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = append(out, string(r)...)
	}
	return append(out, '"')
}

// digestOf is the hex SHA-256 of a document's canonical form.
func digestOf(document any) (string, error) {
	raw, err := canonical(document)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
