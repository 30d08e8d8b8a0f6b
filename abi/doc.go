// Package abi is the contract between a biome and the host that runs it.
//
// It promises one table for each thing that must not be said twice: the host
// functions ([Functions]), the codes ([Codes]), the guest-visible error numbers
// ([Errnos]), the limits ([LimitTable]), the two ordered vocabularies ([Reach],
// [Classification]) and the manifest ([Manifest]). Linking, checks, documentation
// and tests are driven from these tables.
//
// It imports the standard library only and refuses to know how a module is run,
// who is calling, or where anything is stored.
package abi
