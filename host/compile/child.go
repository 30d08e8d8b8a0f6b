package compile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

const (
	childName      = "ecotone-compile" // argv[0] of a child
	childRestarted = "confined"        // argv[1] when the child executed itself again
)

// childDescriptors bounds what a child may have open: standard streams, the runtime's poller, the
// engine's one file.
const childDescriptors = 64

// selfReport answers kindSelfReport from inside the jail. Only this package's tests set it: the
// product binary has no such mode.
var selfReport func(asked string) []byte

// RunIfChild must be the first statement of main, and of TestMain in test binaries that compile.
// In a process that a [Compiler] started it compiles and exits; elsewhere it returns at once.
func RunIfChild() {
	if len(os.Args) == 0 || os.Args[0] != childName {
		return
	}
	if err := child(len(os.Args) == 2 && os.Args[1] == childRestarted); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child confines itself before it reads the first byte of the module. An error here is one of the
// machinery; what is wrong with the module goes into the answer.
func child(restarted bool) error {
	runtime.GOMAXPROCS(1)
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if !restarted {
		if err := jail.Restart(dir, []string{childName, childRestarted}); err != nil {
			return err
		}
	}
	req, err := readRequest(os.Stdin)
	if err != nil {
		return err
	}
	// Where memory for code cannot be had, the engine interprets without a word. It must not come
	// to that by the bounds that follow.
	unbounded, err := generate(context.Background(), filepath.Join(dir, "unbounded"), probeModule)
	if err != nil {
		return err
	}
	if used := jail.AddressSpaceInUse(); used > 0 && req.AddressSpace > used {
		// The collector works harder before the address space ends.
		debug.SetMemoryLimit(int64((req.AddressSpace - used) / 4 * 3))
	}
	report, err := jail.Enter(jail.Policy{
		Dir:          dir,
		AddressSpace: req.AddressSpace,
		CPU:          req.CPU,
		Descriptors:  childDescriptors,
		FileSize:     req.Artifact,
		Restarted:    restarted,
	})
	if err != nil {
		return err
	}
	original, module := make([]byte, req.Original), make([]byte, req.Length)
	for _, b := range [][]byte{original, module} {
		if _, err := io.ReadFull(os.Stdin, b); err != nil {
			return err
		}
	}
	a, artifact := serve(req.Kind, dir, original, module, unbounded != "")
	a.Jail = report
	return reply(a, artifact)
}

// serve does what is asked. A panic of the engine becomes an answer: the bytes made it panic. native
// says that the engine makes code on this machine.
func serve(kind byte, dir string, original, module []byte, native bool) (a answer, artifact string) {
	defer func() {
		if p := recover(); p != nil {
			a, artifact = engineFailed(fmt.Sprintf("panic: %v\n%s", p, debug.Stack())), ""
		}
	}()
	ctx := context.Background()
	var err error
	if a.Fingerprint, err = fingerprint(ctx, filepath.Join(dir, "probe")); err != nil {
		return engineFailed("fingerprint: " + err.Error()), ""
	}
	if native && interprets(ctx, filepath.Join(dir, "before")) {
		return noRoom(), ""
	}
	switch kind {
	case kindFingerprint:
		return a, ""
	case kindSelfReport:
		if selfReport == nil {
			return engineFailed("not a kind of request"), ""
		}
		a.Self = selfReport(string(module))
		return a, ""
	case kindCompile:
	default:
		return engineFailed("not a kind of request"), ""
	}
	// What was rewritten is validated as it was, first: what was added could make an index right that
	// was wrong (S2).
	err = nil
	if len(original) > 0 {
		err = validate(ctx, original)
	}
	if err == nil {
		err = validate(ctx, module)
	}
	if err != nil {
		return answer{Code: abi.CodeModuleInvalid, Message: "the module does not validate: " + abi.Quote(err.Error())}, ""
	}
	out := filepath.Join(dir, "module")
	if a.Name, err = generate(ctx, out, module); err != nil {
		return engineFailed(err.Error()), ""
	}
	if a.Name == "" { // a module without functions, or an engine that interprets
		if native && interprets(ctx, filepath.Join(dir, "after")) {
			return noRoom(), ""
		}
		return a, ""
	}
	return a, filepath.Join(out, filepath.FromSlash(a.Name))
}

// engineFailed tells running into the jail's limits from the rest.
func engineFailed(detail string) answer {
	switch {
	case outOfMemory(detail):
		return answer{Code: abi.CodeCompileLimit, Message: memoryMessage, Detail: detail}
	case strings.Contains(detail, "file too large"): // RLIMIT_FSIZE; Go ignores the signal
		return answer{Code: abi.CodeCompileLimit, Message: "the module compiles to more native code than is allowed", Detail: detail}
	}
	return answer{Code: abi.CodeCompileFailed, Message: "the engine could not compile the module", Detail: detail}
}

// interprets reports whether the engine makes no code now. dir is new.
func interprets(ctx context.Context, dir string) bool {
	name, err := generate(ctx, dir, probeModule)
	return err != nil || name == ""
}

func noRoom() answer {
	return answer{Code: abi.CodeCompileLimit, Message: memoryMessage, Detail: "there is no room for code"}
}

const memoryMessage = "compiling the module takes more memory than the limit compileMemory allows"

// outOfMemory recognises the ways Go, cgo and the engine say it.
func outOfMemory(text string) bool {
	for _, s := range []string{
		"out of memory", "cannot allocate memory", "failed to create new OS thread", "pthread_create failed",
		"cannot reserve arena",
	} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// reply streams the artifact from its file: it need not be in memory a second time.
func reply(a answer, artifact string) error {
	const maxDetail = 8 << 10
	a.Detail = a.Detail[:min(len(a.Detail), maxDetail)]
	if artifact == "" {
		return a.write(os.Stdout, bytes.NewReader(nil), 0)
	}
	f, err := os.Open(artifact)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return a.write(os.Stdout, f, st.Size())
}
