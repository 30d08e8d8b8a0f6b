// Package wasmtest assembles WebAssembly binaries for tests.
//
// It promises that what it is told to write is what is in the bytes: sections in the
// order of the format, counts and sizes right, nothing checked. A module that is wrong
// on purpose is as easy to make as a right one, down to raw sections ([Builder.Section])
// and raw bytes ([LEB], [Section], [Header]). It refuses to know what a valid module is.
//
// Functions, globals and tables are numbered as the format numbers them, imports first,
// so imports must be added before definitions; the builder panics when they are not,
// because a test that gets an index wrong should fail where it was written.
package wasmtest
