// Package schema compiles the JSON Schemas that biomes bring, and holds inputs and outputs to them.
//
// It promises that a schema is refused at upload rather than half understood: exactly draft
// 2020-12, every keyword known, every reference inside the schema itself, size, depth, number of
// subschemas and patterns bounded; nothing is ever loaded from a file or the network. It
// promises that validation is exact (numbers are not rounded, nothing is coerced), that it
// names places and never values, and that its work is bounded whatever schema and value
// are. It refuses to know what the schema is for.
//
// # Unknown properties
//
// An object whose schema lists properties has no others (X59). Where a schema has "properties" and says
// nothing about further ones (no additionalProperties, patternProperties or
// unevaluatedProperties), it is compiled with additionalProperties:false; where it is composed ($ref,
// $dynamicRef, allOf, anyOf, oneOf, if, then, else, dependentSchemas), with
// unevaluatedProperties:false around the whole, so that each branch may name properties the others
// do not. Branches, $defs, and everything below not, if and contains stay as written: to
// close a condition would change what it means. An object that two branches both describe has
// to say itself what it allows. To allow anything, write additionalProperties:true.
//
// # What is accepted
//
// All keywords of the core, applicator, unevaluated, validation, meta-data and format vocabularies,
// except $vocabulary, contentSchema, and $id anywhere but at the root, where it is only a name.
// Keywords starting with x- are ignored. format is asserted; the known formats are date,
// time, date-time, duration, email, hostname, ipv4, ipv6, json-pointer, uri, uri-reference and
// uuid, others are refused. contentEncoding and contentMediaType are annotations. Patterns
// are RE2, not ECMA-262: no look-around and no back-references.
package schema
