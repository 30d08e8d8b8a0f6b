// Package clients proves that the documents of the API are true: it makes a client of each of them
// with somebody else's generator, one in Go and one in TypeScript, and drives the main job with
// nothing but those. It is a module of its own, so that the generators are none of the product's
// dependencies, and is run by `make clients`.
package clients
