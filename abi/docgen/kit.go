package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/abi/tck"
)

// writeRuns shows the calls of a case and what they must give.
func writeRuns(b *bytes.Buffer, c tck.Case) {
	for i, r := range c.Runs {
		if i > 0 {
			b.WriteString("    in the next invocation:\n")
		}
		if r.Before != "" {
			fmt.Fprintf(b, "    before it, %s:\n", r.Before)
		}
		for _, s := range r.Steps {
			fmt.Fprintf(b, "    %s → %s\n", s, s.Want)
		}
		if ending := ending(r.Want); ending != "" {
			fmt.Fprintf(b, "    %s\n", ending)
		}
	}
}

func ending(e tck.Ending) string {
	switch {
	case e.Failure != (tck.Failure{}):
		return fmt.Sprintf("the invocation fails with %s: %s, %s", e.Code, e.Failure.Code, e.Failure.Message)
	case e.Code != "":
		return fmt.Sprintf("the invocation ends with %s", e.Code)
	case e.Output != "":
		return "the output is " + e.Output
	case e.LogBytes != 0:
		return fmt.Sprintf("the log has taken %d bytes", e.LogBytes)
	}
	return ""
}

func kitPage() []byte {
	var b bytes.Buffer
	b.WriteString("# The conformance kit\n\n" + strings.Replace(generated, "from the tables of package abi", "from the cases of package abi/tck", 1))
	fmt.Fprintf(&b, `Package abi/tck checks a host for conformance with the ABI. Its guest, one module of a few kilobytes, makes the host calls that a
script names and reports what they gave; the kit compares. Each function of the table and each error number has a case, and a
test fails when one has none.

A host joins by implementing two small interfaces of the package: one opens a session in which the guest may do all that its
manifest asks for, the other invokes %s with an input and tells output, code, receipt and log. It serves the kit's origin
to http_fetch, and can do to a session what some cases need done from outside:

`, code(string(tck.Call)))
	for _, d := range tck.Disturbances() {
		fmt.Fprintf(&b, "- %s\n", d)
	}
	fmt.Fprintf(&b, `
Cases without raw pointers also run through each language binding: C, Rust, AssemblyScript and Go have a guest that understands
the same scripts. %d cases:

| case | what it shows | errors |
|---|---|---|
`, len(tck.Cases()))
	for _, c := range tck.Cases() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(c.ID), c.About, errnos(expected(c)))
	}
	return b.Bytes()
}

// expected are the error numbers a case expects, each once.
func expected(c tck.Case) []abi.Errno {
	var out []abi.Errno
	for _, e := range abi.Errnos() {
		for _, r := range c.Runs {
			for _, s := range r.Steps {
				if s.Want.Errno == e.Errno && (len(out) == 0 || out[len(out)-1] != e.Errno) {
					out = append(out, e.Errno)
				}
			}
		}
	}
	return out
}
