package schema

// shape says what subschemas a keyword holds.
type shape uint8

const (
	value shape = iota + 1 // none
	one                    // a schema
	many                   // an array of schemas
	named                  // an object of schemas
	defs                   // an object of schemas that apply only where they are referred to
)

// keyword is one row of the table of what is understood. A keyword without a row is refused: one that
// is not understood is one that is not enforced.
type keyword struct {
	shape   shape
	inPlace bool // its subschemas judge the same value as the schema they are in
	each    bool // they judge every member of the value
	asIs    bool // nothing below is closed: it is a condition, not a description
	silent  bool // it says something about values and refuses none
}

var keywords = map[string]keyword{
	"$schema": {shape: value, silent: true}, "$id": {shape: value, silent: true}, "$ref": {shape: value}, "$anchor": {shape: value, silent: true},
	"$dynamicRef": {shape: value}, "$dynamicAnchor": {shape: value, silent: true}, "$comment": {shape: value, silent: true},
	"$defs": {shape: defs, silent: true},

	"allOf": {shape: many, inPlace: true}, "anyOf": {shape: many, inPlace: true}, "oneOf": {shape: many, inPlace: true},
	"then": {shape: one, inPlace: true}, "else": {shape: one, inPlace: true}, "dependentSchemas": {shape: named, inPlace: true},
	"not": {shape: one, inPlace: true, asIs: true}, "if": {shape: one, inPlace: true, asIs: true},

	"properties": {shape: named}, "patternProperties": {shape: named, each: true}, "additionalProperties": {shape: one, each: true},
	"unevaluatedProperties": {shape: one, each: true}, "propertyNames": {shape: one, each: true},
	"items": {shape: one, each: true}, "prefixItems": {shape: many}, "unevaluatedItems": {shape: one, each: true},
	"contains": {shape: one, each: true, asIs: true},

	"type": {shape: value}, "enum": {shape: value}, "const": {shape: value},
	"multipleOf": {shape: value}, "maximum": {shape: value}, "exclusiveMaximum": {shape: value}, "minimum": {shape: value}, "exclusiveMinimum": {shape: value},
	"maxLength": {shape: value}, "minLength": {shape: value}, "pattern": {shape: value},
	"maxItems": {shape: value}, "minItems": {shape: value}, "uniqueItems": {shape: value}, "maxContains": {shape: value}, "minContains": {shape: value},
	"maxProperties": {shape: value}, "minProperties": {shape: value}, "required": {shape: value}, "dependentRequired": {shape: value},
	"format": {shape: value}, "contentEncoding": {shape: value, silent: true}, "contentMediaType": {shape: value, silent: true},

	"title": {shape: value, silent: true}, "description": {shape: value, silent: true}, "default": {shape: value, silent: true}, "deprecated": {shape: value, silent: true},
	"readOnly": {shape: value, silent: true}, "writeOnly": {shape: value, silent: true}, "examples": {shape: value, silent: true},
}

// hints name what a keyword of another draft became.
var hints = map[string]string{
	"definitions":      "draft 2020-12 calls it $defs",
	"dependencies":     "draft 2020-12 has dependentSchemas and dependentRequired",
	"additionalItems":  "draft 2020-12 has items after prefixItems",
	"id":               "a schema is named with $id, at its root",
	"$recursiveRef":    "draft 2020-12 calls it $dynamicRef",
	"$recursiveAnchor": "draft 2020-12 calls it $dynamicAnchor",
	"nullable":         "write null as one of the types",
	"contentSchema":    "contents of strings are not looked into",
	"$vocabulary":      "the vocabularies are fixed",
}

// formats are those that are known, and asserted.
var formats = map[string]bool{
	"date": true, "time": true, "date-time": true, "duration": true, "email": true, "hostname": true, "ipv4": true,
	"ipv6": true, "json-pointer": true, "uri": true, "uri-reference": true, "uuid": true,
}
