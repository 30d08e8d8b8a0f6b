// Package conformance compares the plug-in interface of this project with the one it stands in for:
// extism/go-sdk, which is a dependency of this module so that it is none of the product's.
package conformance
