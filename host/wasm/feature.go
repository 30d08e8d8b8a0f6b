package wasm

// Names of the proposals that are recognised and refused.
const (
	threads        = "threads"
	memory64       = "memory64"
	multiMemory    = "multi-memory"
	customPages    = "custom page sizes"
	exceptions     = "exception handling"
	garbage        = "garbage collection"
	typedRefs      = "typed function references"
	tailCalls      = "tail calls"
	stackSwitching = "stack switching"
	extendedConst  = "extended constant expressions"
	relaxedSIMD    = "relaxed SIMD"
	wideArithmetic = "wide arithmetic"
	memoryControl  = "memory control"
	stringRefs     = "reference-typed strings"
	sharedAll      = "shared-everything threads"
)

// typeForms are the bytes that begin a type or a value type in proposals.
var typeForms = map[byte]string{
	0x78: garbage, 0x77: garbage, // packed i8 and i16
	0x74: exceptions, 0x69: exceptions, // noexn and exnref
	0x73: garbage, 0x72: garbage, 0x71: garbage, // the bottom types
	0x6e: garbage, 0x6d: garbage, 0x6c: garbage, 0x6b: garbage, 0x6a: garbage, // any, eq, i31, struct and array
	0x75: stackSwitching, 0x68: stackSwitching, // nocont and cont
	0x67: stringRefs, 0x66: stringRefs, 0x62: stringRefs, 0x61: stringRefs,
	0x65: sharedAll,
	0x64: typedRefs, 0x63: typedRefs, // ref and ref null
	0x5f: garbage, 0x5e: garbage, // struct and array types
	0x5d: stackSwitching,         // continuation types
	0x50: garbage, 0x4f: garbage, // sub and sub final
	0x4e: garbage, // recursive groups
}

// Extensions to WebAssembly 1.0 that are accepted, as the report names them.
const (
	useBulk = 1 << iota
	useMultiValue
	useReferences
	useSaturating
	useSignExtension
	useSIMD
)

var useNames = [...]string{
	"bulk-memory", "multi-value", "reference-types", "saturating-float-to-int", "sign-extension", "simd",
}

func featureNames(set uint) []string {
	out := []string{}
	for i, name := range useNames {
		if set&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}
