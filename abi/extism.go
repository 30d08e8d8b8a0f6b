package abi

// ExtismModule is the import module of the Extism plug-in interface, in the form of its kernel 1.7.0.
const ExtismModule = "extism:host/env"

// ExtismUserModule is where a plug-in imports functions that an embedder gives it. No host here has any.
const ExtismUserModule = "extism:host/user"

// ExtismFunction is one row of the plug-in interface. A plug-in has no door of its own: what touches
// anything outside the invocation goes through a host function of the table, which sets its reach,
// its further price and what is recorded.
type ExtismFunction struct {
	Name    string
	Params  []ValueType
	Result  ValueType // 0: none
	Through []string  // host functions it goes through; none: it touches the plug-in's memory alone
	Price   Price     // of the call itself: what goes through a host function is paid there as well
	Does    string
}

// Signature is the function's type.
func (f *ExtismFunction) Signature() Signature {
	s := Signature{Params: f.Params, Reach: f.Reach(), Through: f.Through}
	if f.Result != 0 {
		s.Results = []ValueType{f.Result}
	}
	return s
}

// Reach is the highest of the host functions it goes through.
func (f *ExtismFunction) Reach() Reach {
	reach := ReachOwner
	for _, name := range f.Through {
		if through, ok := FunctionByName(name); ok {
			reach = max(reach, through.Reach)
		}
	}
	return reach
}

// Prices of the plug-in interface, which is called once for each few bytes. A block is an address to find; a
// byte or a number is there at once. The KiB are those that are copied, or made.
var (
	extismWord  = Price{500, 50}
	extismBlock = Price{1000, 50}
)

var extismTable = []ExtismFunction{
	{"alloc", []ValueType{I64}, I64, nil, extismBlock, "makes a block and answers its address; 0 when there is no room for it"},
	{"free", []ValueType{I64}, 0, nil, extismBlock, "gives a block back; another address is nothing to give back"},
	{"length", []ValueType{I64}, I64, nil, extismBlock, "the length of a block; 0 for any other address"},
	{"length_unsafe", []ValueType{I64}, I64, nil, extismBlock, "as length"},
	{"load_u8", []ValueType{I64}, I32, nil, extismWord, "the byte at an address; 0 outside of memory"},
	{"load_u64", []ValueType{I64}, I64, nil, extismWord, "the number at an address; outside of memory it is a trap"},
	{"store_u8", []ValueType{I64, I32}, 0, nil, extismWord, "changes a byte; outside of memory nothing"},
	{"store_u64", []ValueType{I64, I64}, 0, nil, extismWord, "changes a number; outside of memory it is a trap"},
	{"input_offset", nil, I64, nil, extismWord, "the address of the input; 0 when it is empty"},
	{"input_length", nil, I64, nil, extismWord, "the length of the input"},
	{"input_load_u8", []ValueType{I64}, I32, nil, extismWord, "a byte of the input; 0 behind its end"},
	{"input_load_u64", []ValueType{I64}, I64, nil, extismWord, "a number of the input; outside of memory it is a trap"},
	{"input_set", []ValueType{I64, I64}, 0, nil, extismWord, "says where the input is; outside of memory nothing"},
	{"output_set", []ValueType{I64, I64}, 0, []string{"output"}, extismWord, "says where the output is, which is taken when the capability has returned; outside of memory nothing"},
	{"output_offset", nil, I64, nil, extismWord, "the address of the output"},
	{"output_length", nil, I64, nil, extismWord, "the length of the output"},
	{"error_set", []ValueType{I64}, 0, []string{"error"}, extismWord, "says which block is the error, which fails the invocation when the capability has returned; 0 takes it back"},
	{"error_get", nil, I64, nil, extismWord, "the address of the error"},
	{"reset", nil, 0, nil, extismBlock, "forgets all blocks, the input, the output and the error"},
	{"memory_bytes", nil, I64, nil, extismWord, "how many bytes there are for blocks"},
	{"config_get", []ValueType{I64}, I64, nil, extismBlock, "the block of a value that the install grant set; 0 when it set none of that name"},
	{"var_get", []ValueType{I64}, I64, []string{"kv_get"}, extismBlock, "the block of a value that is kept; 0 when there is none"},
	{"var_set", []ValueType{I64, I64}, 0, []string{"kv_put", "kv_delete"}, extismBlock, "keeps a value; a value at address 0 removes it"},
	{"http_request", []ValueType{I64, I64}, I64, []string{"http_fetch"}, extismBlock, "sends a request and answers the block of the body; 0 when it is empty"},
	{"http_status_code", nil, I32, nil, extismWord, "the status of the last response; 0 when there was none"},
	{"http_headers", nil, I64, nil, extismBlock, "the block of the last response's headers, a JSON object; 0 when there was none"},
	{"log_trace", []ValueType{I64}, 0, []string{"log"}, extismBlock, "a log record of level debug"},
	{"log_debug", []ValueType{I64}, 0, []string{"log"}, extismBlock, "a log record of level debug"},
	{"log_info", []ValueType{I64}, 0, []string{"log"}, extismBlock, "a log record of level info"},
	{"log_warn", []ValueType{I64}, 0, []string{"log"}, extismBlock, "a log record of level warn"},
	{"log_error", []ValueType{I64}, 0, []string{"log"}, extismBlock, "a log record of level error"},
	{"get_log_level", nil, I32, nil, extismWord, "0, trace: everything is kept within the quota"},
}

var extismIndex = func() map[string]*ExtismFunction {
	m := make(map[string]*ExtismFunction, len(extismTable))
	for i := range extismTable {
		m[extismTable[i].Name] = &extismTable[i]
	}
	return m
}()

// ExtismFunctions returns the plug-in interface in its documented order. The caller must not change it.
func ExtismFunctions() []ExtismFunction { return extismTable }

// ExtismFunctionByName finds a row of the plug-in interface.
func ExtismFunctionByName(name string) (*ExtismFunction, bool) {
	f, ok := extismIndex[name]
	return f, ok
}
