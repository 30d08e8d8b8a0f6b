package wasm

import (
	"bytes"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

var (
	magic   = []byte("\x00asm")
	version = []byte{1, 0, 0, 0}
)

const headerBytes = 8

// formats are what is uploaded by mistake, by the bytes it begins with.
var formats = []struct {
	offset int
	begins string
	name   string
	hint   string
}{
	{0, "\x1f\x8b", "a gzip archive", "upload the module itself"},
	{0, "PK\x03\x04", "a zip archive", "upload the module that is in it"},
	{0, "PK\x05\x06", "an empty zip archive", "upload the module itself"},
	{257, "ustar", "a tar archive", "upload the module that is in it"},
	{0, "\x28\xb5\x2f\xfd", "a zstd archive", "upload the module itself"},
	{0, "\xfd7zXZ\x00", "an xz archive", "upload the module itself"},
	{0, "BZh", "a bzip2 archive", "upload the module itself"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive", "upload the module that is in it"},
	{0, "!<arch>\n", "an object archive", "link it into a module"},
	{0, "\x7fELF", "an ELF program or library", "build for a WebAssembly target"},
	{0, "MZ", "a Windows program or library", "build for a WebAssembly target"},
	{0, "\xcf\xfa\xed\xfe", "a Mach-O program or library", "build for a WebAssembly target"},
	{0, "\xfe\xed\xfa\xcf", "a Mach-O program or library", "build for a WebAssembly target"},
	{0, "\xca\xfe\xba\xbe", "a Java class or universal binary", "build for a WebAssembly target"},
	{0, "BC\xc0\xde", "LLVM bitcode", "build for a WebAssembly target and link"},
	{0, "%PDF-", "a PDF document", ""},
	{0, "\x89PNG", "a PNG image", ""},
	{0, "#!", "a script", "build it for a WebAssembly target"},
	{0, "<!DOCTYPE", "an HTML document", "the download may have failed"},
	{0, "<html", "an HTML document", "the download may have failed"},
	{0, "version https://git-lfs", "a Git LFS pointer", "fetch the file it points to"},
}

// identify says why data is not a core module, or nothing when its preamble is one's.
func identify(p *problems, data []byte) bool {
	refuse := func(code abi.Code, offset int, hint, format string, args ...any) bool {
		p.add(code, "", offset, hint, format, args...)
		return false
	}
	switch {
	case len(data) == 0:
		return refuse(abi.CodeModuleNotWasm, 0, "upload a WebAssembly module", "the upload is empty")
	case bytes.HasPrefix(data, magic) && len(data) < headerBytes:
		return refuse(abi.CodeModuleMalformed, len(data), "", "the module ends inside its header of %d bytes", headerBytes)
	case bytes.HasPrefix(data, magic):
		v := data[4:headerBytes]
		if bytes.Equal(v, version) {
			return true
		}
		// The second half of the version field is the layer: 1 is a component.
		if v[2] == 1 && v[3] == 0 {
			return refuse(abi.CodeModuleComponent, 4, "upload the core module: build without componentising, or extract it with jco or wasm-tools",
				"this is a component, not a core module")
		}
		return refuse(abi.CodeModuleNotWasm, 4, "", "version %x is not that of a core module", v)
	}
	for _, f := range formats {
		if len(data) >= f.offset && bytes.HasPrefix(data[f.offset:], []byte(f.begins)) {
			return refuse(abi.CodeModuleNotWasm, 0, f.hint, "this is %s, not a WebAssembly module", f.name)
		}
	}
	if text := leadingText(data); text != "" {
		if looksLikeText(text) {
			return refuse(abi.CodeModuleText, 0, "assemble it first, for instance with wat2wasm", "this is WebAssembly in text format, not a binary module")
		}
		return refuse(abi.CodeModuleNotWasm, 0, "upload a WebAssembly module", "this is text, not a WebAssembly module")
	}
	return refuse(abi.CodeModuleNotWasm, 0, "upload a WebAssembly module", "the upload does not begin with %q", magic)
}

// leadingText returns the beginning of data when it reads as text.
func leadingText(data []byte) string {
	const look = 4096
	head := data
	if len(head) > look {
		head = head[:look]
		for len(head) > 0 && !utf8.RuneStart(data[len(head)]) {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) || bytes.ContainsRune(head, 0) {
		return ""
	}
	return string(head)
}

// looksLikeText reports whether text begins as the text format does: comments and white
// space, then a parenthesis and a keyword of a module or script.
func looksLikeText(text string) bool {
	rest := skipComments([]byte(text))
	if len(rest) == 0 || rest[0] != '(' {
		return false
	}
	rest = skipComments(rest[1:])
	for _, word := range []string{"module", "component", "assert_", "type", "import", "func", "memory", "table", "global", "export"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			return true
		}
	}
	return false
}

func skipComments(b []byte) []byte {
	for {
		b = bytes.TrimLeft(b, " \t\r\n\ufeff")
		var end []byte
		switch {
		case bytes.HasPrefix(b, []byte(";;")):
			end = []byte("\n")
		case bytes.HasPrefix(b, []byte("(;")):
			end = []byte(";)")
		default:
			return b
		}
		i := bytes.Index(b[2:], end)
		if i < 0 {
			return nil
		}
		b = b[2+i+len(end):]
	}
}
