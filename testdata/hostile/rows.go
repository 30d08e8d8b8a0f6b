package hostile

import "github.com/ecotone-dev/ecotone/abi"

func upload(name string, want abi.Code) Module { return Module{Name: name, Stage: Upload, Want: want} }

func probe(name string, want abi.Code) Module { return Module{Name: name, Stage: Probe, Want: want} }

func invoke(name string, calls ...Step) Module {
	return Module{Name: name, Stage: Invoke, Calls: calls}
}

// ends is one call that is stopped with a code.
func ends(name string, code abi.Code) Module { return invoke(name, Step{Code: code}) }

// answers is one call for each output.
func answers(name string, outputs ...string) Module {
	m := invoke(name)
	for _, o := range outputs {
		m.Calls = append(m.Calls, Step{Output: o})
	}
	return m
}

func metered(m Module) Module { m.NeedsMetering = true; return m }

func tableBound(m Module) Module { m.NeedsTableBound = true; return m }

// Digits of errnos.
const (
	einval = "1"
	efault = "2"
)

// assembledRows are the modules with a .wat in this folder.
var assembledRows = []Module{
	// Processor time.
	ends("cpu_loop", abi.CodeDeadline),
	metered(ends("cpu_recursion_exponential", abi.CodeDeadline)),
	metered(ends("cpu_call_ladder", abi.CodeDeadline)),
	metered(ends("cpu_indirect", abi.CodeDeadline)),
	ends("cpu_bulk", abi.CodeDeadline),
	ends("stack_recursion", abi.CodeStackLimit),
	ends("stack_frames", abi.CodeStackLimit),
	upload("start_loop", abi.CodeStartRefused),
	upload("start_hostcall", abi.CodeStartRefused),
	upload("start_exported", abi.CodeStartRefused),
	upload("start_and_command", abi.CodeStartRefused),
	probe("initialize_loop", abi.CodeInitializeFailed),
	probe("initialize_trap", abi.CodeInitializeFailed),
	probe("initialize_hostcall", abi.CodeInitializeFailed),
	probe("initialize_exit", abi.CodeInitializeFailed),
	upload("initialize_wrong_sig", abi.CodeExportSignature),
	upload("initialize_is_global", abi.CodeExportSignature),
	upload("initialize_is_host_import", abi.CodeExportSignature),

	// Traps.
	ends("trap_unreachable", abi.CodeGuestTrap),
	ends("trap_oob_load", abi.CodeGuestTrap),
	ends("trap_div_zero", abi.CodeGuestTrap),
	ends("trap_indirect_null", abi.CodeGuestTrap),
	ends("trap_indirect_type", abi.CodeGuestTrap),
	invoke("trap_second_call", Step{Input: "false", Output: "0"}, Step{Input: "true", Code: abi.CodeGuestTrap}, Step{Input: "false", Output: "0"}),
	ends("ret_nonzero", abi.CodeGuestError),
	ends("err_own_code", abi.CodeGuestError),

	// Memory and tables.
	answers("mem_grow_bomb", "0"),
	answers("mem_grow_once", "0"),
	answers("mem_grow_wrap", "0"),
	upload("mem_initial_512mib", abi.CodeMemoryLimit),
	upload("mem_initial_4gib", abi.CodeMemoryLimit),
	answers("mem_max_4gib", "{}"),
	upload("table_max", abi.CodeModuleLimit),
	upload("table_sum", abi.CodeModuleLimit),
	upload("table_many", abi.CodeModuleLimit),
	tableBound(answers("table_grow_bomb", "0")),
	upload("data_oob_negative", abi.CodeModuleInvalid),
	upload("data_oob_end", abi.CodeModuleInvalid),
	upload("elem_oob", abi.CodeModuleInvalid),

	// The shape of the ABI.
	upload("abi_no_memory", abi.CodeExportMissing),
	upload("abi_memory_not_exported", abi.CodeExportMissing),
	upload("abi_memory_is_function", abi.CodeExportSignature),
	upload("abi_memory_imported", abi.CodeImportUnknown),
	upload("abi_no_invoke", abi.CodeExportMissing),
	upload("abi_invoke_wrong_params", abi.CodeExportSignature),
	upload("abi_invoke_wrong_result", abi.CodeExportSignature),
	upload("abi_invoke_two_results", abi.CodeExportSignature),
	upload("abi_invoke_is_global", abi.CodeExportSignature),
	upload("abi_invoke_is_host_import", abi.CodeExportSignature),

	// Imports.
	upload("imp_unknown_module", abi.CodeImportUnknown),
	upload("imp_unknown_function", abi.CodeImportUnknown),
	upload("imp_wrong_signature", abi.CodeImportSignature),
	upload("imp_wasi_wrong_signature", abi.CodeImportSignature),
	upload("imp_host_global", abi.CodeImportSignature),
	upload("imp_host_table", abi.CodeImportSignature),
	upload("imp_host_memory", abi.CodeImportSignature),
	upload("imp_case_confusable", abi.CodeImportUnknown),
	upload("imp_function_confusable", abi.CodeImportUnknown),
	upload("imp_reserved_module", abi.CodeNameReserved),
	upload("imp_reserved_name", abi.CodeNameReserved),
	upload("exp_reserved_name", abi.CodeNameReserved),
	upload("imp_above_reach", abi.CodeImportAboveReach),
	upload("imp_above_reach_platform", abi.CodeImportAboveReach),

	// WASI.
	upload("wasi_path_open", abi.CodeImportUnknown),
	upload("wasi_fd_readdir", abi.CodeImportUnknown),
	upload("wasi_sock_accept", abi.CodeImportUnknown),
	upload("wasi_sock_open", abi.CodeImportUnknown),
	upload("wasi_proc_raise", abi.CodeImportUnknown),
	upload("wasi_unstable", abi.CodeImportUnknown),
	upload("wasi_thread_spawn", abi.CodeImportUnknown),
	upload("wasi_preview2", abi.CodeImportUnknown),
	answers("wasi_prestat_probe", "0"),
	answers("wasi_args_env", "0"),
	answers("wasi_fd_bad", "8"),
	ends("wasi_sleep_hour", abi.CodeDeadline),
	ends("wasi_random_flood", abi.CodeRandomLimit),
	answers("wasi_stdout_flood", "0"),
	answers("wasi_iovec_bomb", "{}"),
	answers("wasi_iovec_overflow", "{}"),
	answers("wasi_stdin_read", "0"),
	ends("wasi_proc_exit", abi.CodeGuestExit),
	ends("wasi_exit_continue", abi.CodeGuestExit),

	// Pointers of host calls.
	answers("out_len_ffffffff", efault),
	answers("out_ptr_wrap", efault),
	answers("out_ptr_past_end", efault),
	answers("out_ptr_end_len0", "0"),
	answers("out_ptr_past_end_len0", efault),
	answers("read_ptr_past_end", efault),
	answers("random_ptr_wrap", efault),
	answers("log_len_ffffffff", efault),
	answers("log_level_bad", einval),
	answers("kv_ptr_wrap", efault),
	answers("file_ptr_wrap", efault),
	answers("out_last_byte", "7"),
	answers("log_flood", "0"),
	answers("log_injection", "{}"),
	ends("out_flood", abi.CodeOutputLimit),
	ends("out_none", abi.CodeOutputMissing),
	answers("out_twice", "2"),
	answers("out_overwritten", "1"),
	ends("out_invalid_utf8", abi.CodeOutputInvalid),
	ends("out_not_json", abi.CodeOutputInvalid),
	ends("out_json_trailing", abi.CodeOutputInvalid),
	ends("out_json_duplicate", abi.CodeOutputInvalid),
	ends("out_json_nul", abi.CodeOutputInvalid),
	ends("out_json_deep", abi.CodeOutputInvalid),
	answers("out_json_bignum", "[123456789012345678901234567890.12345678901234567890e-5,-0,1E400]"),
	answers("out_header_injection", "\r\n\r\n{\"x\":\"\\r\\nSet-Cookie: a=b\\r\\n\"}"),
	answers("out_script", `"</script><script>alert(1)</script>"`),
	ends("host_call_flood", abi.CodeHostCallLimit),
	answers("host_call_limit", "0"),
	answers("random_flood", "0"),

	// State.
	answers("state_global", "1", "1"),
	answers("state_memory", "1", "1"),
	answers("state_data", "5", "5"),
	invoke("state_memory_leak", Step{Input: `"of the first caller"`, Output: `""`}, Step{Input: `"of the second"`, Output: `""`}),
	answers("state_memory_scan", "0", "0"),
	answers("state_grow", "1", "1"),
	answers("state_table", "1", "1"),
	answers("state_table_grow", "1", "1"),
	answers("state_passive", "1", "1"),
	answers("state_elem_drop", "1", "1"),
	answers("state_init_global", "4", "4"),
	answers("state_init_table", "1", "1"),
	invoke("reenter_grow", Step{Input: `{"a":[1,2,3]}`, Output: `{"a":[1,2,3]}`}),
	answers("float_nan_bits", "1"),

	// Names.
	answers("names_path", "{}"),
	upload("names_control", abi.CodeImportUnknown),
	upload("names_long", abi.CodeModuleLimit),
}

// featureRows are proposals beyond WebAssembly 2.0 (folder feat) that the assembler knows.
var featureRows = []Module{
	upload("feat/threads_wait_forever", abi.CodeModuleFeature),
	upload("feat/threads_atomics", abi.CodeModuleFeature),
	upload("feat/memory64", abi.CodeModuleFeature),
	upload("feat/memory64_table64", abi.CodeModuleFeature),
	upload("feat/multi_memory", abi.CodeModuleFeature),
	upload("feat/multi_memory_access", abi.CodeModuleFeature),
	upload("feat/exceptions_exnref", abi.CodeModuleFeature),
	upload("feat/exceptions_try_table_loop", abi.CodeModuleFeature),
	upload("feat/exceptions_legacy", abi.CodeModuleFeature),
	upload("feat/tail_call", abi.CodeModuleFeature),
	upload("feat/extended_const", abi.CodeModuleFeature),
	upload("feat/relaxed_simd", abi.CodeModuleFeature),
	upload("feat/custom_page_sizes", abi.CodeModuleFeature),
}
