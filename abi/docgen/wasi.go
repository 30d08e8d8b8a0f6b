package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// wasiPage is what of WASI preview 1 is there for programs that were written for it.
func wasiPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Programs written for WASI\n\n" + generated)
	fmt.Fprintf(&b, `A WebAssembly program that was written for WASI preview 1, in whatever language, is a biome as it is: its manifest says
%s. It imports from that module alone; a module that imports from %s as well is refused (FACE_MIXED).

- A **command** exports %s. The manifest names that export, once for each capability it serves; %s, at most %d of %d bytes
  each, tell them apart. Its name is the biome's. It may not export %s too.
- A **reactor** exports functions %s or %s, each for a capability, and optionally %s, which runs once without authority, without
  input and without files. 0, or nothing, is success.

| what the program has | what that is |
|---|---|
| standard input | the invocation's input |
| standard output | the invocation's output |
| standard error | the invocation's log |
| arguments | the manifest's |
| environment | empty, always |
| descriptor 3, the directory %s | the session's workspace, if the session has one |
| exit code | 0 is success; every other code is GUEST_EXIT, and what was on standard output is dropped |
| clocks, randomness, sleep | the host's: coarse, from a budget, and never past the deadline |

Callers see JSON. %s and %s of a capability say how bytes stand for it: %s (the bytes are one JSON value; this is what is
meant when nothing is said), %s (a JSON string, whose text they are, in UTF-8) or %s (a JSON string that encodes them). Schemas judge
the JSON.

`, code(`"abi": "`+abi.WASIModule+`"`), code(abi.Module), code(abi.ExportStart), code("arguments"), abi.MaxArguments, abi.MaxArgumentBytes,
		code(abi.ExportInitialize), code("() -> ()"), code("() -> i32"), code(abi.ExportInitialize), code("/"), code("inputEncoding"), code("outputEncoding"),
		code(string(abi.EncodingJSON)), code(string(abi.EncodingText)), code(string(abi.EncodingBase64)))
	b.WriteString(`## Files

Everything done with a file is a host call of the invocation: it is counted, priced, held to the grant's globs and to labels, and in the
receipt, as if a native biome had made it. So a program needs no rewriting, and has no more rights than one that was written for Ecotone.

- Opening looks at the file (` + "`file_stat`" + `) and notes its version; reading reads it (` + "`file_read`" + `) as far as it is needed.
- What is written stays with the invocation until the file is closed or synchronised, or the run ends with success, and then replaces
  exactly the version that was opened (` + "`file_replace`" + `). When somebody else wrote meanwhile, close and sync answer STALE (72); at
  the end of a run, when there is nobody left to tell, the invocation fails with VERSION_MISMATCH.
- A run that fails leaves what it had closed or synchronised, and drops the rest.
- A file that is made is there at once, empty, under the invocation's classification of that moment; of many makers one succeeds.
- Paths are resolved by their names below the directory they begin at. One that leaves it, or is absolute, answers NOTCAPABLE (76).
- The content of all open files together is bounded by the memory limit, and a file by the file limit.
- Of errors of host calls, EDENIED is NOTCAPABLE (76), EQUOTA is NOSPC (51), ETOOBIG is FBIG (22), EVERSION and ECONFLICT are STALE (72).

## Functions

Prices are in fuel; host calls that a function makes have their own price besides.

| function | signature | what it does | price | per KiB |
|---|---|---|---:|---:|
`)
	for _, f := range abi.WASIFunctions() {
		if f.Refused != 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d |\n", code(f.Name), code(signature(&f)), f.Does, f.Price.Base, f.Price.PerKiB)
	}
	b.WriteString(`
## What is out of scope

These link, so that programs that import them run, and answer one error whatever they are asked.

| function | answers | why |
|---|---:|---|
`)
	for _, f := range abi.WASIFunctions() {
		if f.Refused != 0 {
			fmt.Fprintf(&b, "| %s | %d | %s |\n", code(f.Name), f.Refused, f.Does)
		}
	}
	b.WriteString(`
Besides them: the times of files are the host's and are neither told nor set; directories are not renamed; links are neither made nor
followed; a stream is no terminal. ` + "`wasi_unstable`" + `, threads and preview 2 (components) are refused when they are uploaded.
`)
	return b.Bytes()
}

func signature(f *abi.WASIFunction) string {
	s := f.Signature()
	params := make([]string, len(s.Params))
	for i, p := range s.Params {
		params[i] = p.String()
	}
	result := " -> i32"
	if f.NoResult {
		result = ""
	}
	return "(" + strings.Join(params, ", ") + ")" + result
}
