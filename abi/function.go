package abi

// Names of the import modules a biome may use.
const (
	Module     = "ecotone_v1"             // the host functions of this package
	WASIModule = "wasi_snapshot_preview1" // see [WASIFunctions]
)

// Version is the ABI's version as manifests of [FaceNative] name it.
const Version = "ecotone_v1"

// ReservedPrefix begins names that only the host may add to a module.
const ReservedPrefix = "ecotone_"

// ManifestSection is the custom section that holds the manifest.
const ManifestSection = "ecotone.manifest"

// ValueType is a WebAssembly value type as the binary format encodes it.
type ValueType byte

const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
)

func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	}
	return "unknown"
}

// Param is one parameter of a host function.
type Param struct {
	Name string
	Type ValueType
}

// Effect says what a host function does to the world, and so what must be recorded
// before it acts (S8).
type Effect uint8

const (
	// EffectNone changes nothing outside the invocation.
	EffectNone Effect = iota
	// EffectRead observes state that outlives the invocation.
	EffectRead
	// EffectMutate changes state that outlives the invocation: a durable intent comes first.
	EffectMutate
	// EffectExternal acts outside the gateway: announced before, closed after.
	EffectExternal
)

func (e Effect) String() string { return [...]string{"none", "read", "mutate", "external"}[e] }

// NeedsIntent reports whether a durable `started` event must precede the call.
func (e Effect) NeedsIntent() bool { return e >= EffectMutate }

// Flow says how a host function takes part in information flow.
type Flow uint8

const (
	FlowNone   Flow = iota
	FlowSource      // raises the invocation's label to the source's
	FlowSink        // needs label ≤ the sink's
	FlowBoth        // a sink first, then a source
)

func (f Flow) String() string { return [...]string{"none", "source", "sink", "both"}[f] }

// Group is the set a function belongs to when link sets are made: a session without
// files links no function of [GroupFiles].
type Group string

const (
	GroupCall   Group = "call"
	GroupKV     Group = "kv"
	GroupFiles  Group = "files"
	GroupInvoke Group = "invoke"
	GroupHTTP   Group = "http"
	GroupSecret Group = "secret"
	GroupAudit  Group = "audit"
)

// Function is one row of the host-function table. Every function returns one i64:
// ≥ 0 a length or a value, < 0 a negated [Errno].
type Function struct {
	Name    string
	Params  []Param
	Reach   Reach // fixed property of the function; checked when linked and on every call
	Group   Group
	Effect  Effect
	Flow    Flow
	Price   Price
	Receipt string // what its line in the receipt names as target; "" records the call only
	Returns string // what a non-negative result means
	Doc     string
	Errnos  []Errno // beyond EINVAL, EFAULT, EDENIED, EQUOTA and ECANCELED, which any call may answer
}

// Price is in units of fuel: Base per call, PerKiB for each started KiB in and out.
type Price struct{ Base, PerKiB uint64 }

func p(names ...string) []Param {
	out := make([]Param, 0, len(names))
	for _, n := range names {
		switch n[len(n)-1] {
		case '*': // a pointer and a length
			out = append(out, Param{n[:len(n)-1] + "_ptr", I32}, Param{n[:len(n)-1] + "_len", I32})
		case '8':
			out = append(out, Param{n[:len(n)-1], I64})
		default:
			out = append(out, Param{n, I32})
		}
	}
	return out
}

var functionTable = []Function{
	{
		Name: "input", Reach: ReachOwner, Group: GroupCall, Price: Price{100, 10},
		Returns: "the input's length", Doc: "Places the invocation's input in the result register.",
	},
	{
		Name: "result_read", Params: p("ptr", "off", "len"), Reach: ReachOwner, Group: GroupCall, Price: Price{100, 10},
		Returns: "bytes copied; 0 at the end",
		Doc:     "Copies at most len bytes of the result register's body from offset off to ptr; fewer than len mean the end. Reading repeats no side effect.",
	},
	{
		Name: "result_meta", Params: p("ptr", "off", "len"), Reach: ReachOwner, Group: GroupCall, Price: Price{100, 10},
		Returns: "bytes copied; 0 at the end",
		Doc:     "Copies at most len bytes of the JSON document that describes the last result (version, size, status, count …); fewer than len mean the end. A call that has nothing to say leaves {}.",
	},
	{
		Name: "output", Params: p("data*"), Reach: ReachOwner, Group: GroupCall, Price: Price{100, 10},
		Returns: "0", Doc: "Sets the invocation's output, one JSON value. A later call replaces it.", Errnos: []Errno{ETOOBIG},
	},
	{
		Name: "error", Params: p("code*", "message*"), Reach: ReachOwner, Group: GroupCall, Price: Price{100, 10},
		Returns: "0",
		Doc:     "Marks the invocation as failed with the capability's own code (at most 64 bytes of A-Z, 0-9 and _) and message (at most 4 KiB). The output is dropped.",
		Errnos:  []Errno{ETOOBIG},
	},
	{
		Name: "log", Params: p("level", "message*"), Reach: ReachOwner, Group: GroupCall, Price: Price{500, 50},
		Returns: "0", Doc: "Adds one log record; level 0 debug, 1 info, 2 warn, 3 error. Control bytes are escaped, long lines cut; past the quota records are dropped and one marker says so.",
	},
	{
		Name: "time_now", Reach: ReachOwner, Group: GroupCall, Price: Price{100, 0},
		Returns: "nanoseconds since 1970-01-01T00:00:00Z", Doc: "The wall clock, coarse: 1 ms in boundary environments, 1 µs elsewhere.",
	},
	{
		Name: "random", Params: p("ptr", "len"), Reach: ReachOwner, Group: GroupCall, Price: Price{200, 200},
		Returns: "bytes written, always len", Doc: "Fills memory from the host's cryptographic source.",
	},
	{
		Name: "kv_get", Params: p("key*"), Reach: ReachOwner, Group: GroupKV, Effect: EffectRead, Flow: FlowSource, Price: Price{2000, 20}, Receipt: "key",
		Returns: "the value's length", Doc: "Places the value in the result register; meta has its version and classification.", Errnos: []Errno{ENOENT},
	},
	{
		Name: "kv_put", Params: p("key*", "value*"), Reach: ReachOwner, Group: GroupKV, Effect: EffectMutate, Flow: FlowSink, Price: Price{20000, 100}, Receipt: "key",
		Returns: "0", Doc: "Stores the value durably. A new key takes the invocation's label; an existing key keeps its own, and writing above it is refused.", Errnos: []Errno{ETOOBIG},
	},
	{
		Name: "kv_delete", Params: p("key*"), Reach: ReachOwner, Group: GroupKV, Effect: EffectMutate, Flow: FlowSink, Price: Price{20000, 0}, Receipt: "key",
		Returns: "0", Doc: "Removes the key.", Errnos: []Errno{ENOENT},
	},
	{
		Name: "kv_list", Params: p("prefix*", "after*", "limit"), Reach: ReachOwner, Group: GroupKV, Effect: EffectRead, Flow: FlowSource, Price: Price{5000, 20}, Receipt: "key",
		Returns: "the listing's length", Doc: "Places a JSON array of at most limit keys with the prefix, after the key `after`, in the result register; meta has `more`.",
	},
	{
		Name: "file_stat", Params: p("path*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectRead, Flow: FlowSource, Price: Price{2000, 0}, Receipt: "path",
		Returns: "the document's length", Doc: "Places {kind, size, version, classification} in the result register.", Errnos: []Errno{ENOENT, ENOTREG},
	},
	{
		Name: "file_read", Params: p("path*", "off8", "len"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectRead, Flow: FlowSource, Price: Price{5000, 20}, Receipt: "path",
		Returns: "bytes placed in the result register",
		Doc:     "Reads at most len bytes from off and records the version in the session's read ledger; meta has size, version, classification and eof.",
		Errnos:  []Errno{ENOENT, ENOTREG},
	},
	{
		Name: "file_list", Params: p("path*", "after*", "limit"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectRead, Flow: FlowSource, Price: Price{5000, 20}, Receipt: "path",
		Returns: "the listing's length", Doc: "Places a JSON array of {name, kind, size} of a directory in name order in the result register; meta has `more`.", Errnos: []Errno{ENOENT, ENOTREG},
	},
	{
		Name: "file_create", Params: p("path*", "data*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 100}, Receipt: "path",
		Returns: "0", Doc: "Creates a file that must not exist, with the directories above it; of concurrent creators exactly one succeeds. Meta has the version.", Errnos: []Errno{EEXIST, ENOTREG, ETOOBIG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_write", Params: p("path*", "data*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 100}, Receipt: "path",
		Returns: "0", Doc: "Creates the file, or replaces the version this session read or wrote last. Meta has the new version.",
		Errnos: []Errno{EREAD, EVERSION, EDELETED, ENOTREG, ETOOBIG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_replace", Params: p("path*", "version*", "data*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 100}, Receipt: "path",
		Returns: "0", Doc: "Replaces exactly the named version. There is no version that means any: the empty and the zero version never match.",
		Errnos: []Errno{ENOENT, EVERSION, ENOTREG, ETOOBIG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_edit", Params: p("path*", "old*", "new*", "all"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 100}, Receipt: "path",
		Returns: "replacements made",
		Doc:     "Replaces one exact occurrence of old, or every one when all is 1. Needs a prior read. Meta has count and the new version.",
		Errnos:  []Errno{ENOENT, EREAD, EVERSION, EDELETED, ENOMATCH, EAMBIGUOUS, EEMPTY, ESAME, ENOTREG, ETOOBIG, EUNAVAIL},
	},
	{
		Name: "file_copy", Params: p("from*", "to*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 100}, Receipt: "path",
		Returns: "0", Doc: "Copies a regular file; never overwrites; needs no prior read and records none.", Errnos: []Errno{ENOENT, EEXIST, ENOTREG, ETOOBIG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_move", Params: p("from*", "to*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 0}, Receipt: "path",
		Returns: "0", Doc: "Moves a regular file; never overwrites.", Errnos: []Errno{ENOENT, EEXIST, ENOTREG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_remove", Params: p("path*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 0}, Receipt: "path",
		Returns: "0", Doc: "Removes a file or an empty directory; never more.", Errnos: []Errno{ENOENT, ENOTEMPTY, ENOTREG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_mkdir", Params: p("path*"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectMutate, Flow: FlowBoth, Price: Price{20000, 0}, Receipt: "path",
		Returns: "0", Doc: "Makes a directory that must not exist, with the directories above it. It has the invocation's label.", Errnos: []Errno{EEXIST, ENOTREG, EUNAVAIL, ECONFLICT, ETIMEOUT},
	},
	{
		Name: "file_grep", Params: p("pattern*", "glob*", "limit"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectRead, Flow: FlowSource, Price: Price{20000, 50}, Receipt: "glob",
		Returns: "the document's length", Doc: "Places a JSON array of {path, line, text} of at most limit matching lines in the files the glob names in the result register; meta has `more`. Patterns are RE2, at most 256 bytes.",
	},
	{
		Name: "file_glob", Params: p("glob*", "limit"), Reach: ReachOwner, Group: GroupFiles, Effect: EffectRead, Flow: FlowSource, Price: Price{10000, 20}, Receipt: "pattern",
		Returns: "the document's length", Doc: "Places a JSON array of at most limit paths that match the glob in the result register; meta has `more`.",
	},
	{
		Name: "capability_invoke", Params: p("ref*", "input*"), Reach: ReachOwner, Group: GroupInvoke, Effect: EffectExternal, Flow: FlowBoth, Price: Price{50000, 20}, Receipt: "ref",
		Returns: "the output's length", Doc: "Invokes another capability as a child and places its output in the result register; meta has its invocation id and classification. When the child fails the register holds its problem document.",
		Errnos: []Errno{ECHILD, ENOENT, ETOOBIG, ETIMEOUT, EUNAVAIL},
	},
	{
		Name: "http_fetch", Params: p("request*", "body*"), Reach: ReachIntegration, Group: GroupHTTP, Effect: EffectExternal, Flow: FlowBoth, Price: Price{50000, 50}, Receipt: "url",
		Returns: "the response body's length",
		Doc:     "Sends one HTTP request. The request document is {method, url, headers, secret}; the body of the response is in the result register, meta has {status, headers}. Rule, reach, label and budget are settled before the name is resolved.",
		Errnos:  []Errno{ETOOBIG, ETIMEOUT, EIO, ESECRET, EUNAVAIL},
	},
	{
		Name: "secret_hmac", Params: p("name*", "message*"), Reach: ReachIntegration, Group: GroupSecret, Effect: EffectExternal, Flow: FlowBoth, Price: Price{5000, 50}, Receipt: "secret",
		Returns: "the signature's length, always 32", Doc: "Places HMAC-SHA-256 of the secret's fixed prefix and the message in the result register. The secret is never seen.", Errnos: []Errno{ESECRET},
	},
	{
		Name: "audit_query", Params: p("query*"), Reach: ReachPlatform, Group: GroupAudit, Effect: EffectRead, Flow: FlowSource, Price: Price{50000, 50}, Receipt: "query",
		Returns: "the document's length", Doc: "Places rows of the caller's own organisation in the result register. The query document is {invocation, capability, after, limit}.", Errnos: []Errno{EUNAVAIL},
	},
}

var functionIndex = func() map[string]*Function {
	m := make(map[string]*Function, len(functionTable))
	for i := range functionTable {
		m[functionTable[i].Name] = &functionTable[i]
	}
	return m
}()

// Functions returns the host-function table in its documented order. The caller must not
// change it.
func Functions() []Function { return functionTable }

// FunctionByName finds a row of the table.
func FunctionByName(name string) (*Function, bool) { f, ok := functionIndex[name]; return f, ok }
