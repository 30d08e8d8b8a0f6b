package tck

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/ecotone-dev/ecotone/abi"
)

func one(id, about string, steps ...Step) Case {
	return Case{ID: id, About: about, Runs: []Run{{Steps: steps}}}
}

// silently is a case whose script has the last word.
func silently(id, about string, want Ending, steps ...Step) Case {
	return Case{ID: id, About: about, Runs: []Run{{Steps: steps, Silent: true, Want: want}}}
}

const echo = `{"method":"POST","url":"` + originURL + `/echo"}`

func get(path string) string { return `{"method":"GET","url":"` + originURL + path + `"}` }

func signature(message string) string {
	mac := hmac.New(sha256.New, []byte(SecretValue))
	mac.Write([]byte(SecretPrefix + message))
	return string(mac.Sum(nil))
}

// written are the cases that are about more than pointers. The one whose id is a function's name is
// that function's example.
var written = []Case{
	one("input", "The input waits in the result register.", call("input").givesAtLeast(7).holds("input")),
	one("result_read", "Any part of the result can be read, any number of times; reading past the end gives nothing.",
		call("kv_put", "result_read", "milk"), call("kv_get", "result_read").gives(4),
		call("result_read", Buffer{2}, 1).gives(2).body("il"), call("result_read", Buffer{100}, 1).gives(3).body("ilk"),
		call("result_read", Buffer{2}, 4).gives(0), call("result_read", Buffer{2}, 5000).gives(0)),
	one("result_meta", "What the host says of a result is read the same way.",
		call("kv_put", "result_meta", "milk"), call("kv_get", "result_meta").meta(`"classification"`),
		call("result_meta", Buffer{1}, 0).gives(1).body("{")),
	one("result_meta/nothing", "A call that has nothing to say leaves an empty document.",
		call("kv_put", "nothing", "1"), call("result_meta", Buffer{100}, 0).gives(2).body("{}")),
	silently("output", "The last output is the invocation's.", Ending{Output: `{"n":2}`},
		call("output", "1"), call("output", `{"n":2}`)),
	silently("error", "The capability fails in its own words, and what it had put out is dropped.",
		Ending{Code: abi.CodeGuestError, Failure: Failure{"OUT_OF_MILK", "there is none"}},
		call("output", "1"), call("error", "OUT_OF_MILK", "there is none")),
	one("error/EINVAL", "A code is of A-Z, 0-9 and _, and the invocation goes on when it is not.",
		call("error", "out of milk", "").fails(abi.EINVAL), call("error", "", "").fails(abi.EINVAL)),
	one("error/ETOOBIG", "A message has at most 4 KiB.", call("error", "X", Repeat{4097, "m"}).fails(abi.ETOOBIG)),
	{
		ID: "log", About: "A message goes to the log, its control bytes escaped, so that 15 bytes are 16.",
		Runs: []Run{{Steps: []Step{call("log", 2, "the milk is\nlow")}, Want: Ending{LogBytes: 16}}},
	},
	one("log/EINVAL", "There are four levels.", call("log", 4, "x").fails(abi.EINVAL), call("log", -1, "x").fails(abi.EINVAL)),
	one("time_now", "The clock counts nanoseconds since 1970.", call("time_now").givesAtLeast(1_700_000_000_000_000_000)),
	one("random", "The buffer is filled whole.", call("random", Buffer{16}).gives(16), call("random", Buffer{0}).gives(0)),
	one("random/EQUOTA", "An invocation has 1 MiB of random bytes, and may go on without more.",
		call("random", Buffer{256 << 10}).gives(256<<10), call("random", Buffer{256 << 10}), call("random", Buffer{256 << 10}),
		call("random", Buffer{252 << 10}), // the rest is for what a language's runtime takes for itself
		call("random", Buffer{256 << 10}).fails(abi.EQUOTA), call("time_now")),

	one("kv_get", "A value comes back as it was put; its version and classification are in meta.",
		call("kv_put", "kv_get/a", "41"), call("kv_get", "kv_get/a").gives(2).body("41").meta(`"version"`)),
	one("kv_get/ENOENT", "A key that is not there.", call("kv_get", "kv_get/none").fails(abi.ENOENT)),
	one("kv_get/EINVAL", "A key has 1 to 512 bytes.", call("kv_get", "").fails(abi.EINVAL), call("kv_get", Repeat{513, "k"}).fails(abi.EINVAL)),
	{ID: "kv_get/EINTERNAL", About: "A store that fails is the host's failure, and the guest is told no more.", Runs: []Run{
		{Before: KeysFail, Steps: []Step{call("kv_get", "kv_get/x").fails(abi.EINTERNAL)}},
	}},
	one("kv_put", "A put replaces what was there.",
		call("kv_put", "kv_put/a", "1"), call("kv_put", "kv_put/a", ""), call("kv_get", "kv_put/a").gives(0).body("")),
	{ID: "kv_put/durable", About: "What was put is there in the next invocation.", Runs: []Run{
		{Steps: []Step{call("kv_put", "kv_put/b", "kept")}},
		{Steps: []Step{call("kv_get", "kv_put/b").body("kept")}},
	}},
	one("kv_put/ETOOBIG", "A value has at most 256 KiB.", call("kv_put", "kv_put/c", Raw{0, 256<<10 + 1}).fails(abi.ETOOBIG)),
	one("kv_delete", "A key that was deleted is gone.",
		call("kv_put", "kv_delete/a", "1"), call("kv_delete", "kv_delete/a"), call("kv_get", "kv_delete/a").fails(abi.ENOENT)),
	one("kv_delete/ENOENT", "What is not there cannot be deleted.", call("kv_delete", "kv_delete/none").fails(abi.ENOENT)),
	one("kv_list", "Keys are listed in order, a page at a time.",
		call("kv_put", "kv_list/b", "2"), call("kv_put", "kv_list/a", "1"), call("kv_put", "kv_list/c", "3"),
		call("kv_list", "kv_list/", "", 2).body(`["kv_list/a","kv_list/b"]`).meta(`"more":true`),
		call("kv_list", "kv_list/", "kv_list/b", 2).body(`["kv_list/c"]`).meta(`"more":false`),
		call("kv_list", "kv_list/none", "", 0).body(`[]`)),

	one("file_stat", "Describes a file or directory.",
		call("file_create", "a.txt", "hello"), call("file_stat", "a.txt").holds(`"size":5`), call("file_stat", ".").holds(`"kind":"directory"`)),
	one("file_stat/ENOENT", "A file that is not there.", call("file_stat", "none").fails(abi.ENOENT)),
	one("file_stat/EINVAL", "A path that leaves the workspace, or is absolute, is none.",
		call("file_stat", "../x").fails(abi.EINVAL), call("file_stat", "/etc/passwd").fails(abi.EINVAL), call("file_stat", "a\x00b").fails(abi.EINVAL)),
	one("file_read", "Reads a part of a file; meta says whether the end was reached.",
		call("file_create", "a.txt", "hello"),
		call("file_read", "a.txt", 1, 3).gives(3).body("ell").meta(`"eof":false`), call("file_read", "a.txt", 4, 10).body("o").meta(`"eof":true`),
		call("file_read", "a.txt", 50, 10).gives(0)),
	one("file_read/EINVAL", "An offset is not negative.", call("file_create", "a", "1"), call("file_read", "a", -1, 1).fails(abi.EINVAL)),
	one("file_read/ENOTREG", "A directory is not read.", call("file_read", ".", 0, 1).fails(abi.ENOTREG)),
	one("file_list", "Lists a directory in name order, a page at a time.",
		call("file_create", "d/b", "22"), call("file_create", "d/a", "1"),
		call("file_list", "d", "", 1).holds(`"name":"a"`).meta(`"more":true`), call("file_list", "d", "a", 1).holds(`"name":"b"`).meta(`"more":false`)),
	one("file_list/ENOENT", "A directory that is not there.", call("file_list", "none", "", 0).fails(abi.ENOENT)),
	one("file_create", "Makes a file, with the directories above it; meta has its version.",
		call("file_create", "new/deep/a", "1").meta(`"version"`), call("file_read", "new/deep/a", 0, 10).body("1")),
	one("file_create/EEXIST", "Never overwrites.", call("file_create", "a", "1"), call("file_create", "a", "2").fails(abi.EEXIST), call("file_read", "a", 0, 9).body("1")),
	{ID: "file_create/ECONFLICT", About: "A workspace that was taken away is not what the host assumed.", Runs: []Run{
		{Steps: []Step{call("file_stat", ".")}},
		{Before: WorkspaceGone, Steps: []Step{call("file_create", "a", "1").fails(abi.ECONFLICT)}},
	}},
	one("file_write", "Makes a file, or replaces the version this session read or wrote last.",
		call("file_write", "a", "1"), call("file_write", "a", "22").meta(`"version"`), call("file_read", "a", 0, 9).body("22")),
	one("file_write/EREAD", "What was not read is not overwritten.",
		call("file_create", "a", "1"), call("file_copy", "a", "b"), call("file_write", "b", "2").fails(abi.EREAD),
		call("file_read", "b", 0, 9), call("file_write", "b", "2")),
	{ID: "file_write/EUNAVAIL", About: "A ledger that does not answer is not one that says yes.", Runs: []Run{
		{Steps: []Step{call("file_create", "a", "1")}},
		{Before: LedgerSilent, Steps: []Step{call("file_write", "a", "2").fails(abi.EUNAVAIL)}},
	}},
	one("file_replace", "Replaces a version by its name, which stat, read and every write give. No version means any.",
		call("file_create", "a", "1"), call("file_replace", "a", Version{}, "2").meta(`"version"`),
		call("file_replace", "a", "another", "3").fails(abi.EVERSION), call("file_replace", "a", "", "3").fails(abi.EVERSION), call("file_read", "a", 0, 9).body("2")),
	one("file_replace/ENOENT", "There must be a file.", call("file_replace", "none", "v", "1").fails(abi.ENOENT)),
	one("file_edit", "Replaces a text that occurs once, or with all every one.",
		call("file_write", "a", "one two two"), call("file_edit", "a", "one", "1", 0).gives(1), call("file_edit", "a", "two", "2", 1).gives(2).meta(`"count":2`),
		call("file_read", "a", 0, 99).body("1 2 2")),
	one("file_edit/EAMBIGUOUS", "Meta says how often the text occurs.",
		call("file_write", "a", "two two"), call("file_edit", "a", "two", "2", 0).fails(abi.EAMBIGUOUS).meta(`"count":2`)),
	one("file_edit/ENOMATCH", "The text must occur.", call("file_write", "a", "1"), call("file_edit", "a", "2", "3", 0).fails(abi.ENOMATCH)),
	one("file_edit/EEMPTY", "The text must not be empty.", call("file_write", "a", "1"), call("file_edit", "a", "", "3", 0).fails(abi.EEMPTY)),
	one("file_edit/ESAME", "The texts must differ.", call("file_write", "a", "1"), call("file_edit", "a", "1", "1", 0).fails(abi.ESAME)),
	{ID: "file_edit/EDELETED", About: "A file that was deleted after it was read says so.", Runs: []Run{
		{Steps: []Step{call("file_create", "a", "1"), call("file_read", "a", 0, 9)}},
		{Before: FileRemoved, Steps: []Step{call("file_edit", "a", "1", "2", 0).fails(abi.EDELETED)}},
	}},
	one("file_copy", "Copies a file and never overwrites.",
		call("file_create", "a", "1"), call("file_copy", "a", "b"), call("file_copy", "a", "b").fails(abi.EEXIST), call("file_read", "b", 0, 9).body("1")),
	one("file_copy/ENOTREG", "Copies files only.", call("file_mkdir", "d"), call("file_copy", "d", "e").fails(abi.ENOTREG)),
	one("file_move", "Moves a file and never overwrites.",
		call("file_create", "a", "1"), call("file_move", "a", "b"), call("file_stat", "a").fails(abi.ENOENT), call("file_read", "b", 0, 9).body("1")),
	one("file_remove", "Removes a file.", call("file_create", "a", "1"), call("file_remove", "a"), call("file_stat", "a").fails(abi.ENOENT)),
	one("file_remove/ENOTEMPTY", "Removes an empty directory, never a full one.",
		call("file_create", "d/a", "1"), call("file_remove", "d").fails(abi.ENOTEMPTY), call("file_remove", "d/a"), call("file_remove", "d")),
	one("file_mkdir", "Makes a directory, with those above it.",
		call("file_mkdir", "d/e"), call("file_stat", "d/e").holds(`"kind":"directory"`), call("file_mkdir", "d").fails(abi.EEXIST)),
	one("file_grep", "Finds lines by a pattern in the files a glob names.",
		call("file_create", "src/a.go", "package a\n\nfunc A() {}\n"), call("file_create", "b.txt", "func"),
		call("file_grep", "^func", "**/*.go", 10).holds(`"line":3`).meta(`"more":false`)),
	one("file_grep/EINVAL", "The pattern must be one.", call("file_grep", "(", "**", 10).fails(abi.EINVAL)),
	one("file_glob", "Finds paths.",
		call("file_create", "src/a.go", ""), call("file_create", "src/deep/b.go", ""), call("file_create", "c.md", ""),
		call("file_glob", "src/**/*.go", 10).body(`["src/a.go","src/deep/b.go"]`)),

	one("capability_invoke", "The output of the capability that was invoked is the result.",
		call("capability_invoke", string(Child), Script{call("output", "42")}).gives(2).body("42")),
	one("capability_invoke/ECHILD", "When it failed the result is its problem document.",
		call("capability_invoke", string(Child), Script{call("error", "NO_MILK", "none")}).fails(abi.ECHILD).holds(`"GUEST_ERROR"`)),
	one("capability_invoke/EDENIED", "What the manifest does not require is refused.",
		call("capability_invoke", "tck:other.run@1", "1").fails(abi.EDENIED), call("capability_invoke", string(Call), "1").fails(abi.EDENIED)),
	one("capability_invoke/EINVAL", "A ref is of a grammar.", call("capability_invoke", "no ref", "1").fails(abi.EINVAL)),
	one("http_fetch", "Sends a request; the body that comes back is the result, status and headers are meta.",
		call("http_fetch", echo, "hello").gives(10).body("POST hello").meta(`"status":200`)),
	one("http_fetch/status", "A response is a response, whatever its status.", call("http_fetch", get("/none"), "").meta(`"status":404`)),
	one("http_fetch/EDENIED", "No rule, no request.", call("http_fetch", `{"method":"GET","url":"http://other.example/"}`, "").fails(abi.EDENIED)),
	one("http_fetch/EINVAL", "The request document is strict.", call("http_fetch", `{"verb":"GET"}`, "").fails(abi.EINVAL)),
	one("http_fetch/EIO", "The other side failed.", call("http_fetch", get("/broken"), "").fails(abi.EIO)),
	one("http_fetch/ETIMEOUT", "The other side took too long.", call("http_fetch", get("/silent"), "").fails(abi.ETIMEOUT)),
	{ID: "http_fetch/ECANCELED", About: "A cancelled invocation waits for nobody, and its last call says so.", Runs: []Run{
		{Steps: []Step{call("http_fetch", get("/silent"), "").fails(abi.ECANCELED)}, Cancel: true, Want: Ending{Code: abi.CodeCanceled}},
	}},
	one("secret_hmac", "Signs with a secret that nobody sees, after the prefix the secret is bound to.",
		call("secret_hmac", Secret, "milk").gives(32).body(signature("milk"))),
	one("secret_hmac/ESECRET", "A secret that is not the guest's to use.", call("secret_hmac", "another", "milk").fails(abi.ESECRET)),
	one("audit_query", "Rows of the caller's organisation.", call("audit_query", `{"limit":1}`).holds(`"auditId"`)),
	one("audit_query/EINVAL", "The query document is strict.", call("audit_query", `{"all":true}`).fails(abi.EINVAL)),
}
