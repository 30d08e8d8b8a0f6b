package conformance_test

import "github.com/ecotone-dev/ecotone/abi"

// plugin is one of the modules that the SDK ships, with what is done to it here and there.
type plugin struct {
	file string
	// refused is the code that its upload is refused with; "" is a plug-in that runs.
	refused abi.Code
	calls   []call
	reach   abi.Reach // 0 is owner
	// kept: the SDK's calls share one plug-in, because its variables live no longer than that. Here they
	// are kept in the biome's keys, and each call begins with a fresh instance all the same.
	kept bool
	// differs says what is not as in the SDK, and why. docs/extism.md has it in its table.
	differs string
}

// call is one call of an export.
type call struct {
	export, input string
	config        map[string]string
	origin        bool   // the input is made with the origin's URL in place of %s
	deadline      string // ms; "" is the limits' own
	// here is what it comes to here, where that is not what it comes to in the SDK.
	here string
}

func run(calls ...call) []call {
	for i := range calls {
		if calls[i].export == "" {
			calls[i].export = "run_test"
		}
	}
	return calls
}

// plugins is every module in the SDK's folder wasm; a test holds it to that. The file system comes in the
// order of the rows: read_write changes the file that the others read.
var plugins = []plugin{
	{file: "alloc.wasm", calls: run(call{})},
	{file: "config.wasm", calls: run(call{}, call{config: map[string]string{"thing": "hello"}}, call{config: map[string]string{"other": "hello"}})},
	{file: "count_vowels.wasm", kept: true, calls: run(
		call{export: "count_vowels", input: "hello world"}, call{export: "count_vowels", input: ""},
		call{export: "count_vowels", input: "aeiouAEIOU aeiou", config: map[string]string{"vowels": "xyz"}},
	)},
	{file: "count_vowels_std.wasm", calls: run(call{export: "_start", input: "Hello, World!"}, call{export: "_start", input: "bbba"})},
	{file: "exit.wasm", calls: run(
		call{export: "_start"}, call{export: "_start", config: map[string]string{"code": "0"}},
		call{export: "_start", config: map[string]string{"code": "1"}}, call{export: "_start", config: map[string]string{"code": "2"}},
	)},
	{file: "fail.wasm", calls: run(call{})},
	{file: "hello.wasm", calls: run(call{}, call{input: "ignored"})},
	{file: "hello_haskell.wasm", calls: run(
		call{export: "testing", input: "John", config: map[string]string{"greeting": "Howdy"}}, call{export: "testing", input: "John"},
	)},
	{file: "host.wasm", refused: abi.CodeImportUnknown, differs: "It imports `mult` of `extism:host/user`, a function of the program it was written for: there are none."},
	{file: "host_memory.wasm", refused: abi.CodeImportUnknown, differs: "It imports `to_upper` of `host`, a function of the program it was written for: there are none."},
	{file: "host_multiple.wasm", refused: abi.CodeImportUnknown, differs: "It imports functions of `extism:host/user`: there are none."},
	{
		file: "http.wasm", reach: abi.ReachIntegration, calls: run(call{}),
		differs: "Requests go where an endpoint rule of the organisation leads that the install grant kept; there is no `allowed_hosts`. They carry `user-agent: ecotone`, are not redirected, and take no header that is the host's to set.",
	},
	{
		file: "http_headers.wasm", reach: abi.ReachIntegration, calls: run(call{export: "http_get", input: `{"url":"%s/page"}`, origin: true}),
		differs: "Response headers are always there, which the SDK leaves to the embedder; `set-cookie` and those of the connection are not among them; lines of one name are joined with a comma and a space.",
	},
	{file: "input_offset.wasm", calls: run(call{export: "input_offset_length", input: "hello world"})},
	{file: "lib.wasm", refused: abi.CodeExportSignature, differs: "It is a library for another plug-in, whose only function takes an argument: a plug-in is one module."},
	{file: "log.wasm", calls: run(call{}), differs: "All levels are kept, within the quota of the log; `trace` is kept as `debug`."},
	{file: "main.wasm", refused: abi.CodeImportUnknown, differs: "It imports `capitalize` of another plug-in, `lib`: a plug-in is one module."},
	{file: "nested.c.instr.wasm", refused: abi.CodeImportUnknown, differs: "It imports the instrumentation of an observer, `dylibso_observe`, which is not there."},
	{file: "noop.wasm", calls: run(call{})},
	{file: "println.wasm", calls: run(call{input: "to the log"}), differs: "What it prints goes to the log, where the SDK throws it away."},
	{
		file: "read_write.wasm", calls: run(
			call{export: "try_read", config: map[string]string{"path": "/mnt/test.txt"}},
			call{export: "try_write", input: "hello again!", config: map[string]string{"path": "/mnt/test.txt"}},
			call{export: "try_read", config: map[string]string{"path": "/mnt/test.txt"}},
		),
		differs: "Files are those of the session's workspace, whole, at `/`; there is no `allowed_paths`. Without a workspace there are none.",
	},
	{file: "fs.wasm", calls: run(call{}), differs: "As read_write."},
	{file: "fs_std.wasm", calls: run(call{}), differs: "As read_write."},
	{file: "replace.wasm", calls: run(call{input: "sample<input> text"}, call{input: ""})},
	{file: "sleep.wasm", calls: run(
		call{config: map[string]string{"duration": "0"}},
		call{config: map[string]string{"duration": "30"}, deadline: "300"},
	)},
	{file: "std_command.wasm", calls: run(call{export: "_start", input: "ben"})},
	{file: "var.wasm", kept: true, calls: run(call{}, call{}), differs: "Variables are keys of the biome below `extism/var/`: they are there for the next invocation, whoever makes it, and are bounded and classified as keys are."},
}
