// Package contract writes the API down as OpenAPI 3.1, from the route tables and the Go types
// that the handlers read and answer.
//
// It promises that a document has every route of its table and no other, that a type is described
// the way encoding/json writes it, and that what it cannot describe truly stops the build of the
// document instead of being described vaguely. It refuses to know what any route does.
//
// Descriptions of answers leave room: a member that is added later breaks no client that ignores
// what it does not know. Descriptions of requests do not: the decoders are strict (X4).
package contract
