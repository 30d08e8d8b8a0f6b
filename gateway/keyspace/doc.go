// Package keyspace keeps two things in the gateway's store: the keys and values of biomes,
// and the records of workspaces.
//
// A key space belongs to one biome in one space of one organisation. The three names and
// the key are separate parts of the store's key, so that no key, whatever its bytes, reaches
// into another space (PF-E3). A put is durable when it returns (PF-E11).
//
// # Information flow (S5)
//
// A key space is labelled with the floor of its space. Listing and missing a key read it;
// making and deleting a key write it, and so need a label no higher than the floor. A key
// has the label of the invocation that made it, and keeps it: a value above it is refused.
// A key above the ceiling is absent from every answer. Putting one succeeds, as it would if
// nothing were there, and the key keeps its label, so that it stays absent.
//
// The globs of a grant are matched against the key as it is; package host/files/glob has
// their language.
//
// The package refuses to know who asks and which files there are.
package keyspace
