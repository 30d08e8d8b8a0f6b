package abi

// WASIFunction is one row of the WASI preview 1 subset. It exists so that language
// runtimes start; none of it reaches outside the invocation. Signatures are those of
// wasi_snapshot_preview1; the result is an i32 WASI errno unless NoResult is set.
type WASIFunction struct {
	Name     string
	Params   []ValueType
	NoResult bool
	Does     string
}

// WASI errno values used by the subset (wasi_snapshot_preview1).
const (
	WASISuccess int32 = 0
	WASIBadf    int32 = 8
	WASIFault   int32 = 21
	WASIInval   int32 = 28
	WASINosys   int32 = 52
	WASINotcap  int32 = 76
)

var wasiTable = []WASIFunction{
	{"args_get", []ValueType{I32, I32}, false, "no arguments"},
	{"args_sizes_get", []ValueType{I32, I32}, false, "no arguments"},
	{"environ_get", []ValueType{I32, I32}, false, "no environment"},
	{"environ_sizes_get", []ValueType{I32, I32}, false, "no environment"},
	{"clock_res_get", []ValueType{I32, I32}, false, "the coarse resolution of time_now"},
	{"clock_time_get", []ValueType{I32, I64, I32}, false, "as time_now"},
	{"random_get", []ValueType{I32, I32}, false, "as random, from the same budget"},
	{"sched_yield", nil, false, "nothing"},
	{"poll_oneoff", []ValueType{I32, I32, I32, I32}, false, "sleeps at most until the deadline; descriptors answer badf"},
	{"proc_exit", []ValueType{I32}, true, "ends the invocation"},
	{"fd_read", []ValueType{I32, I32, I32, I32}, false, "descriptor 0 is empty; others answer badf"},
	{"fd_write", []ValueType{I32, I32, I32, I32}, false, "descriptors 1 and 2 go to the log; others answer badf"},
	{"fd_close", []ValueType{I32}, false, "answers badf"},
	{"fd_seek", []ValueType{I32, I64, I32, I32}, false, "answers badf"},
	{"fd_fdstat_get", []ValueType{I32, I32}, false, "descriptors 0 to 2 are character devices; others answer badf"},
	{"fd_fdstat_set_flags", []ValueType{I32, I32}, false, "answers badf"},
	{"fd_prestat_get", []ValueType{I32, I32}, false, "answers badf: there are no directories"},
	{"fd_prestat_dir_name", []ValueType{I32, I32, I32}, false, "answers badf"},
}

// wasiPrices are what differs from the price of a call that moves a few bytes.
var wasiPrices = map[string]Price{
	"fd_write":    {500, 50},  // as log
	"random_get":  {200, 200}, // as random
	"poll_oneoff": {1000, 0},
}

// Price is in units of fuel, as a host function's; the KiB are those logged or filled.
func (f WASIFunction) Price() Price {
	if p, ok := wasiPrices[f.Name]; ok {
		return p
	}
	return Price{100, 0}
}

// WASIFunctions returns the subset in its documented order. The caller must not change it.
func WASIFunctions() []WASIFunction { return wasiTable }

// WASIFunctionByName finds a row of the subset.
func WASIFunctionByName(name string) (WASIFunction, bool) {
	for _, f := range wasiTable {
		if f.Name == name {
			return f, true
		}
	}
	return WASIFunction{}, false
}
