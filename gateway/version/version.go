// Package version says which build this is.
package version

// Set by the linker; see the Makefile.
var (
	Version = "dev"
	Commit  = "unknown"
	Date    = "unknown"
)

// String is one line for people.
func String() string { return "ecotone " + Version + " (commit " + Commit + ", " + Date + ")" }
