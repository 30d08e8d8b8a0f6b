package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/abi/tck"
)

const generated = "<!-- Written by go run ./abi/docgen from the tables of package abi. Change those. -->\n\n"

// general are the errors any host call may answer; rows list what comes on top.
var general = []abi.Errno{abi.EINVAL, abi.EFAULT, abi.EDENIED, abi.EQUOTA, abi.ECANCELED}

func abiPage() []byte {
	var b bytes.Buffer
	b.WriteString("# The ABI\n\n" + generated)
	fmt.Fprintf(&b, `A biome is one WebAssembly module. Its doors are the functions of the import module %s; there are
no others. Besides them it may import the subset of %s listed below, so that language
runtimes start.

`, code(abi.Module), code(abi.WASIModule))
	b.WriteString(`It exports ` + "`memory`" + `, optionally ` + "`_initialize`" + `, and one function ` + "`() -> i32`" + ` for each capability its manifest names. A
capability reads its input with ` + "`input`" + `, sets its output with ` + "`output`" + ` and returns 0. Another result, or a call of
` + "`error`" + `, is a failure of the capability itself.

`)
	fmt.Fprintf(&b, `Arguments are pairs of a pointer and a length in the module's memory. They are copied once, before the first check.
Every function returns an i64: zero or more is a length or a value, less than zero is a negated error number. A refusal
is a value; the module may go on without what it was refused. Results of variable length wait in the invocation's
result register until the next call that fills it; %s and %s copy from it and repeat no side effect.

`, code("result_read"), code("result_meta"))
	writeIndex(&b)
	writeFunctions(&b)
	writeErrnos(&b)
	writeWASI(&b)
	writeVocabularies(&b)
	writeLimits(&b)
	return b.Bytes()
}

func writeIndex(b *bytes.Buffer) {
	b.WriteString("## Host functions\n\nPrices are in fuel: for each call, and for each KiB begun of what goes in and comes out. They are taken from the limit fuel,\n" +
		"as are the guest's own instructions, at about one for a simple one; when it is used up the invocation ends with FUEL_EXHAUSTED.\n\n" +
		"| function | reach | effect | flow | price | per KiB |\n|---|---|---|---|---:|---:|\n")
	for i := range abi.Functions() {
		f := &abi.Functions()[i]
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s | %d | %d |\n", code(f.Name), f.Name, f.Reach, f.Effect, f.Flow, f.Price.Base, f.Price.PerKiB)
	}
	fmt.Fprintf(b, `
- **reach**: a module may import the function only if its manifest declares at least this reach. The function works for a
  capability that declares it, in an environment whose ceiling is as high; elsewhere every call answers EDENIED.
- **effect**: none changes nothing outside the invocation; read observes what outlives it; mutate changes that, after a
  durable record; external acts outside the gateway and is recorded before and after.
- **flow**: a source raises the invocation's classification to its own; a sink takes only what is classified at most as
  high as itself; both is a sink first and a source then.

Any call may answer %s. The errors of a function are listed on top of these.

The calls shown are cases of the conformance kit ([tck.md](tck.md)), which this host passes. Text in quotes stands for a pointer
and a length, buffer for memory of the module, and version for the one in the meta before it.
`, errnos(general))
}

func writeFunctions(b *bytes.Buffer) {
	for i := range abi.Functions() {
		f := &abi.Functions()[i]
		params := make([]string, len(f.Params))
		for j, p := range f.Params {
			params[j] = p.Name + ": " + p.Type.String()
		}
		fmt.Fprintf(b, "\n### %s\n\n    %s(%s) -> i64\n\n%s\n\nReturns %s.", f.Name, f.Name, strings.Join(params, ", "), f.Doc, f.Returns)
		if len(f.Errnos) > 0 {
			fmt.Fprintf(b, " Errors: %s.", errnos(f.Errnos))
		}
		if f.Receipt != "" {
			fmt.Fprintf(b, " The receipt names the %s.", f.Receipt)
		}
		b.WriteString("\n")
		if c, ok := tck.Example(f.Name); ok {
			fmt.Fprintf(b, "\n%s\n\n", c.About)
			writeRuns(b, c)
		}
	}
}

func writeErrnos(b *bytes.Buffer) {
	b.WriteString("\n## Error numbers\n\nA call that fails returns the negated number.\n\n| number | name | meaning | codes |\n|---:|---|---|---|\n")
	for _, e := range abi.Errnos() {
		var codes []string
		for _, c := range abi.Codes() {
			if c.Errno == e.Errno {
				codes = append(codes, code(string(c.Code)))
			}
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s |\n", int(e.Errno), code(e.Name), e.Meaning, strings.Join(codes, " "))
	}
}

func writeWASI(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## The WASI subset\n\nImport module %s. None of it reaches outside the invocation. Results are WASI error numbers.\n\n| function | signature | what it does | price | per KiB |\n|---|---|---|---:|---:|\n", code(abi.WASIModule))
	for _, f := range abi.NativeWASI() {
		price := f.Price
		fmt.Fprintf(b, "| %s | %s | %s | %d | %d |\n", code(f.Name), code(signature(&f)), f.ForNative(), price.Base, price.PerKiB)
	}
}

func writeVocabularies(b *bytes.Buffer) {
	var reaches, classes []string
	for _, r := range abi.Reaches() {
		reaches = append(reaches, code(r.String()))
	}
	for _, c := range abi.Classifications() {
		classes = append(classes, code(c.String()))
	}
	fmt.Fprintf(b, `
## Vocabularies

- Reach: %s.
- Classification: %s.
- Capability ref: %s, at most %d bytes, such as %s.
- Environment ref: %s.

The manifest is the custom section %s; its %s is %s. Modules that were built for another interface name that: see
[wasi.md](wasi.md).
`, strings.Join(reaches, " < "), strings.Join(classes, " < "), code("<domain>:<resource>.<verb>@<major>"), abi.MaxRefBytes, code("kb:page.read@1"),
		code("environment:<slug>"), code(abi.ManifestSection), code("abi"), code(abi.Version))
}

func writeLimits(b *bytes.Buffer) {
	b.WriteString("\n## Limits\n\nEvery limit has a value; none can be switched off. Upload limits are judged at admission, environment limits are\nresolved for each invocation, server limits hold for the process.\n\n" +
		"| limit | default | hard maximum | scope | over it |\n|---|---:|---:|---|---|\n")
	for _, l := range abi.LimitTable() {
		hard := "operator"
		if l.Hard > 0 {
			hard = amount(l.Hard, l.Unit)
		}
		over := code(string(l.Code))
		if l.Code == "" {
			over = "cut, with a marker"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", code(l.Name), amount(l.Default, l.Unit), hard, l.Scope, over)
	}
}

func codesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Codes\n\n" + generated)
	b.WriteString(`A refusal carries one of these codes over every face: HTTP problem documents, MCP, the command line, audit rows, and
as an error number inside a module. Codes are never renamed and never reused. The kind is a closed class; only
`)
	var retry []string
	for _, k := range abi.Kinds() {
		if k.Retryable() {
			retry = append(retry, code(string(k)))
		}
	}
	fmt.Fprintf(&b, "%s may be tried again unchanged.\n\n| code | kind | HTTP | in a module | meaning |\n|---|---|---:|---|---|\n", strings.Join(retry, " and "))
	for _, c := range abi.Codes() {
		inside := "–"
		if c.Errno != 0 {
			inside = code(c.Errno.String())
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", code(string(c.Code)), c.Kind, c.Status, inside, c.Meaning)
	}
	return b.Bytes()
}

func code(s string) string { return "`" + s + "`" }

func errnos(list []abi.Errno) string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = code(e.String())
	}
	return strings.Join(names, ", ")
}

// amount renders a limit with the largest binary unit that divides it.
func amount(n int64, unit string) string {
	if unit == "ms" {
		if n%1000 == 0 {
			return strconv.FormatInt(n/1000, 10) + " s"
		}
		return strconv.FormatInt(n, 10) + " ms"
	}
	if unit == "bytes" {
		for _, u := range []struct {
			size int64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= u.size && n%u.size == 0 {
				return strconv.FormatInt(n/u.size, 10) + " " + u.name
			}
		}
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatInt(n, 10)
}
