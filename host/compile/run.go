package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

// What a child may give back. Legitimate native code is about four times its module; a module of
// nothing but divisions comes to some thirty times.
const (
	artifactBase   = 16 << 20
	artifactFactor = 32
	maxStderr      = 16 << 10
	// afterKill is how long to wait for the pipes of a child that was killed.
	afterKill = 5 * time.Second
)

func maxArtifact(module int) uint64 { return artifactBase + artifactFactor*uint64(module) }

// bounds are the limits of a child.
type bounds struct {
	cpu, wall    time.Duration
	addressSpace uint64
}

// starved is the processor time below which a child that is out of wall time did not have its
// chance. The bound on a module is the processor time; the wall time bounds what it keeps waiting,
// however busy the machine is.
func (b bounds) starved() time.Duration { return min(b.cpu/2, b.wall/6) }

func boundsOf(l *abi.Limits) bounds {
	return bounds{
		cpu:          time.Duration(l.Get(abi.LimitCompileCPU)) * time.Millisecond,
		wall:         time.Duration(l.Get(abi.LimitCompileWall)) * time.Millisecond,
		addressSpace: uint64(l.Get(abi.LimitCompileMemory)),
	}
}

// run has a child do one thing in a private directory below tmp that is gone afterwards. The error
// is an [abi.Error]: COMPILE_LIMIT, COMPILE_FAILED, MODULE_INVALID, IMAGE_NOT_READY (errStarved), or
// from ctx.
func run(ctx context.Context, tmp string, b bounds, kind byte, original, module []byte) (answer, []byte, error) {
	// The kernel ties the child's life to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	dir, err := os.MkdirTemp(tmp, childPrefix)
	if err != nil {
		return answer{}, nil, notStarted(err)
	}
	defer os.RemoveAll(dir)
	wall, cancel := context.WithTimeout(ctx, b.wall)
	defer cancel()
	cmd, err := jail.Command(wall, dir, childName)
	if err != nil {
		return answer{}, nil, notStarted(err)
	}
	artifact := maxArtifact(len(module))
	req := request{
		Kind: kind, AddressSpace: b.addressSpace, CPU: b.cpu, Artifact: artifact,
		Original: uint64(len(original)), Length: uint64(len(module)),
	}
	stdout := &boundedBuffer{bound: int(artifact) + maxAnswerHeader + 12, strict: true}
	stderr := &boundedBuffer{bound: maxStderr}
	cmd.Stdin = io.MultiReader(bytes.NewReader(req.encode()), bytes.NewReader(original), bytes.NewReader(module))
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = afterKill
	if err := cmd.Start(); err != nil {
		return answer{}, nil, notStarted(err)
	}
	if failed := cmd.Wait(); failed != nil {
		switch {
		case ctx.Err() != nil:
			return answer{}, nil, contextError(ctx.Err())
		case wall.Err() != nil && processorTime(cmd) < b.starved():
			return answer{}, nil, starved(b.wall, processorTime(cmd))
		case wall.Err() != nil:
			return answer{}, nil, overLimit("wall time", "compileWall", failed)
		}
		return answer{}, nil, diagnose(failed, cmd, b, string(stderr.kept))
	}
	a, code, err := parseAnswer(stdout.kept, artifact)
	if err != nil {
		return answer{}, nil, childFailed(err)
	}
	if err := a.err(); err != nil {
		return a, nil, err
	}
	if !validName(a.Name, code) || len(a.Fingerprint) != fingerprintSize {
		return answer{}, nil, childFailed(errors.New("the answer's names are not what the engine writes"))
	}
	return a, code, nil
}

// err turns the child's refusal into an error. A code the child has no business to give is a
// failure of the child.
func (a answer) err() error {
	switch a.Code {
	case "":
		return nil
	case abi.CodeModuleInvalid, abi.CodeCompileLimit, abi.CodeCompileFailed:
		e := &abi.Error{Code: a.Code, Message: printable(a.Message)}
		if a.Detail != "" {
			e.Cause = errors.New(a.Detail)
		}
		return e
	}
	return childFailed(fmt.Errorf("the child answered with code %s", abi.Quote(string(a.Code))))
}

// printable bounds a message from a child: what was quoted there stays readable, what was not
// becomes harmless.
func printable(message string) string {
	const maxMessage = 512
	message = message[:min(len(message), maxMessage)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd || (r >= 0x80 && r != '…') {
			return '?'
		}
		return r
	}, message)
}

// diagnose finds out which limit ended a child, if one did.
func diagnose(failed error, cmd *exec.Cmd, b bounds, stderr string) error {
	cause := fmt.Errorf("%w; %s", failed, stderr)
	used := processorTime(cmd)
	signal := jail.EndedBy(cmd.ProcessState)
	switch {
	case cmd.ProcessState.ExitCode() == jail.ExitCPU,
		signal != "" && used >= b.cpu/2: // the clock behind the limit counts ticks and differs from the accounts
		return overLimit("processor time", "compileCpu", cause)
	case outOfMemory(stderr):
		return (&abi.Error{Code: abi.CodeCompileLimit, Message: memoryMessage}).WithCause(cause)
	case signal == "killed":
		// Nobody here did: most likely the system ran out of memory.
		return abi.Errorf(abi.CodeCompileLimit, "the system ended the compilation, most likely for its memory: %w", cause)
	}
	return childFailed(cause)
}

// processorTime is what a child that has ended used, its own children included.
func processorTime(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// errStarved is the cause when a child was given too little of the processor to be judged.
var errStarved = errors.New("the child was starved")

func starved(wall, used time.Duration) error {
	cause := fmt.Errorf("%w: %v of processor time in %v", errStarved, used, wall)
	return abi.Errorf(abi.CodeImageNotReady, "the machine was too busy to compile the module: %w", cause).
		WithHint("try again when the machine is less busy")
}

func overLimit(what, limit string, cause error) error {
	return abi.Errorf(abi.CodeCompileLimit, "compiling the module takes more %s than the limit %s allows: %w", what, limit, cause)
}

func childFailed(cause error) error {
	return abi.Errorf(abi.CodeCompileFailed, "the engine could not compile the module: %w", cause)
}

func notStarted(cause error) error {
	return abi.Errorf(abi.CodeInternal, "the compiler could not be started: %w", cause)
}

func notKept(cause error) error {
	return abi.Errorf(abi.CodeInternal, "the compiled form could not be written: %w", cause)
}

func contextError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return abi.Errorf(abi.CodeDeadline, "the deadline passed before the module was compiled: %w", err)
	}
	return abi.Errorf(abi.CodeCanceled, "the caller gave up before the module was compiled: %w", err)
}
