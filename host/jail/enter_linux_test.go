package jail

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// work is what a spinning child does.
var work int

func init() {
	modes["inside"] = inside
	modes["cpu"] = func() error {
		if err := enter(Policy{CPU: time.Second}); err != nil {
			return err
		}
		for spun := 0; ; spun++ {
			work = spun // until the kernel ends it
		}
	}
	modes["memory"] = func() error {
		if err := enter(Policy{AddressSpace: 2 << 30}); err != nil {
			return err
		}
		var kept [][]byte
		for range 64 {
			kept = append(kept, make([]byte, 64<<20))
		}
		runtime.KeepAlive(kept)
		return nil
	}
	modes["file"] = func() error {
		if err := enter(Policy{FileSize: 1 << 20}); err != nil {
			return err
		}
		return os.WriteFile("big", make([]byte, 2<<20), 0o600)
	}
	modes["middle"] = middle
	modes["wait"] = func() error {
		if err := enter(Policy{}); err != nil {
			return err
		}
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour)
		return nil
	}
}

// enter goes the way a child goes: restart where needed, then Enter with the working directory.
func enter(p Policy) error {
	_, err := enterReport(p)
	return err
}

func enterReport(p Policy) (Report, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	p.Dir, p.Restarted = dir, len(os.Args) == 3
	if !p.Restarted {
		if err := Restart(dir, append(os.Args[:2:2], "restarted")); err != nil {
			return nil, err
		}
	}
	return Enter(p)
}

// attempts is what a process tries from inside, and whether it may. Where the kernel has no Landlock
// the first ones are not refused.
var attempts = []struct {
	name    string
	allowed bool
	try     func() error
}{
	{"read a public file", false, func() error { _, err := os.ReadFile("/etc/passwd"); return err }},
	{"read its own environment file", false, func() error { _, err := os.ReadFile("/proc/self/environ"); return err }},
	{"list the parent directory", false, func() error { _, err := os.ReadDir(".."); return err }},
	{"read beside its directory", false, func() error { _, err := os.ReadFile("../secret"); return err }},
	{"write beside its directory", false, func() error { return os.WriteFile("../x", nil, 0o600) }},
	{"write to the temporary directory", false, func() error { return os.WriteFile("/tmp/ecotone-jail-test", nil, 0o600) }},
	{"move a file out", false, func() error {
		return errors.Join(os.WriteFile("own", nil, 0o600), os.Rename("own", "../moved"))
	}},
	{"make a link in its directory", false, func() error { return os.Symlink("/etc/passwd", "link") }},
	{"make a hard link", false, func() error { return os.Link("../secret", "hard") }},
	{"write, rename and remove in its directory", true, func() error {
		return errors.Join(os.Mkdir("d", 0o700), os.WriteFile("d/a", []byte("a"), 0o600), os.Rename("d/a", "d/b"),
			os.RemoveAll("d"))
	}},
	{"run a program", false, func() error { return exec.Command("/bin/true").Run() }},
	{"become a program", false, func() error { return syscall.Exec("/proc/self/exe", []string{testChild}, nil) }},
	{"connect over TCP", false, func() error { return dial("tcp", "127.0.0.1:9") }},
	{"connect over UDP", false, func() error { return dial("udp", "127.0.0.1:9") }},
	{"listen on TCP", false, func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err }},
	{"open a unix socket", false, func() error { return dial("unix", "@ecotone") }},
	{"signal its parent", false, func() error { return syscall.Kill(os.Getppid(), 0) }},
	{"trace its parent", false, func() error { return syscall.PtraceAttach(os.Getppid()) }},
	{"raise a limit", false, func() error {
		return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	}},
	{"read a limit", true, func() error {
		var l unix.Rlimit
		if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &l); err != nil || l.Max != 0 {
			return fmt.Errorf("core limit %d, %v", l.Max, err)
		}
		return nil
	}},
	{"become dumpable", false, func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
	{"make an anonymous file", false, func() error { _, err := unix.MemfdCreate("x", 0); return err }},
	{"enter a namespace", false, func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"compute on threads, sleep and collect", true, func() error {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				runtime.LockOSThread()
				time.Sleep(time.Millisecond)
				_ = make([]byte, 1<<20)
				runtime.GC()
			})
		}
		wg.Wait()
		return nil
	}},
}

// landlocked is how many of the attempts only Landlock refuses.
const landlocked = 7

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

type finding struct {
	Allowed bool
	Refused bool // by the jail, not for another reason
	Text    string
}

type view struct {
	Report      Report
	Environment []string
	Arguments   int
	Inherited   []int
	Findings    map[string]finding
}

func inside() error {
	report, err := enterReport(Policy{AddressSpace: 4 << 30, CPU: 20 * time.Second, Descriptors: 64, FileSize: 1 << 20})
	if err != nil {
		return err
	}
	v := view{Report: report, Environment: os.Environ(), Findings: map[string]finding{}}
	if v.Inherited, err = Inherited(); err != nil {
		return err
	}
	for _, a := range attempts {
		err := a.try()
		v.Findings[a.name] = finding{
			Allowed: err == nil,
			Refused: errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EXDEV),
			Text:    fmt.Sprint(err),
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		return err
	}
	_, err = bufio.NewReader(os.Stdin).ReadByte() // until the test has looked from outside
	return err
}

// command prepares a child in a directory of its own, next to a file it must not see.
func command(t *testing.T, mode string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	outer := t.TempDir()
	dir := filepath.Join(outer, "own")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(outer, "secret"), []byte("s"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd, err := Command(ctx, dir, testChild, mode)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// PF-F4: no environment; S14: no descriptors, no files, no new privileges.
func TestInside(t *testing.T) {
	t.Setenv("ECOTONE_SENTINEL", "must not be inherited")
	cmd := command(t, "inside")
	// A descriptor that nobody asked for, without close-on-exec, as a library might leave one.
	secret, err := os.Open(filepath.Join(cmd.Dir, "../secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	cmd.ExtraFiles = []*os.File{secret, secret, secret}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var v view
	if err := json.NewDecoder(stdout).Decode(&v); err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v\n%.2000s", err, stderr.String())
	}

	if len(v.Environment) != 0 {
		t.Errorf("environment: %q", v.Environment)
	}
	for _, m := range v.Report {
		t.Logf("%-22s %-5v %s", m.Name, m.Applied, m.Detail)
	}
	needs := []string{MeasureDescriptors, MeasureNoPrivileges, MeasureUndumpable, MeasureCPU, MeasureCore, MeasureSystemCalls}
	if landlockVersion() > 0 {
		needs = append(needs, MeasureFiles)
	}
	for _, name := range needs {
		if !v.Report.Applied(name) {
			t.Errorf("%s is not applied", name)
		}
	}
	if len(v.Inherited) != 0 {
		t.Errorf("came through: %v", v.Inherited)
	}
	nothingInherited(t, cmd.Process.Pid)
	for i, a := range attempts {
		if i < landlocked && !v.Report.Applied(MeasureFiles) {
			continue
		}
		f := v.Findings[a.name]
		if f.Allowed != a.allowed || (!a.allowed && !f.Refused) {
			t.Errorf("%s: allowed %v, want %v: %s", a.name, f.Allowed, a.allowed, f.Text)
		}
	}
	everyThreadConfined(t, cmd.Process.Pid)
	if _, err := stdin.Write([]byte{'\n'}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%.2000s", err, stderr.String())
	}
}

// nothingInherited looks at each descriptor from outside: none but the standard three lacks
// close-on-exec.
func nothingInherited(t *testing.T, pid int) {
	t.Helper()
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil || len(infos) < 3 {
		t.Skipf("no right to look at an undumpable process: %v %v", infos, err)
	}
	for _, path := range infos {
		info, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(info)) {
			flags, ok := strings.CutPrefix(line, "flags:")
			if !ok {
				continue
			}
			n, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 32)
			if err != nil {
				t.Fatal(err)
			}
			if fd, _ := strconv.Atoi(filepath.Base(path)); fd > 2 && n&unix.O_CLOEXEC == 0 {
				t.Errorf("descriptor %d came through", fd)
			}
		}
	}
}

// everyThreadConfined looks at each thread, from outside.
func everyThreadConfined(t *testing.T, pid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads: %v %v", threads, err)
	}
	for _, path := range threads {
		status, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // ended since
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
}

// What poll finds open is what /proc lists, with numbers far apart and on both sides of a batch.
func TestPolled(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	opened := []int{int(null.Fd())}
	for _, least := range []int{63, 64, 1 << 10, 1<<10 + 1, 1<<14 - 1, descriptors - 2} {
		if uint64(least+8) >= limit.Cur {
			continue
		}
		fd, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, least)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		opened = append(opened, fd)
	}
	found, err := polled()
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range opened {
		if !slices.Contains(found, fd) {
			t.Errorf("%d is open and was not found", fd)
		}
	}
	for _, fd := range found {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil && !errors.Is(err, unix.EBADF) {
			t.Errorf("%d: %v", fd, err)
		}
	}
	list, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	// One more is in the list, of reading it, and is closed by now.
	if more := slices.DeleteFunc(list, func(fd int) bool { return slices.Contains(found, fd) }); len(more) > 1 {
		t.Errorf("/proc lists %v too", more)
	}
}

// Each limit ends the process that goes over it.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		mode   string
		code   int
		stderr string
		skip   bool
	}{
		{mode: "cpu", code: ExitCPU},
		{mode: "memory", code: 2, stderr: "out of memory", skip: sanitized},
		{mode: "file", code: 1, stderr: "file too large"}, // Go ignores SIGXFSZ
	} {
		t.Run(tt.mode, func(t *testing.T) {
			if tt.skip {
				t.Skip("a sanitizer reserves more")
			}
			cmd := command(t, tt.mode)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			// On a busy machine the kernel may come before the exit.
			killed := tt.mode == "cpu" && EndedBy(cmd.ProcessState) == "killed"
			if !killed && (cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(stderr.String(), tt.stderr)) {
				t.Errorf("%v, stderr %.300q", err, stderr.String())
			}
		})
	}
}

// middle starts a child and dies.
func middle() error {
	runtime.LockOSThread()
	cmd, err := Command(context.Background(), ".", testChild, "wait")
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return err
	}
	fmt.Print(line)
	return nil
}

// A child does not outlive the process that started it.
func TestParentDeath(t *testing.T) {
	out, err := command(t, "middle").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(out))
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
			return // dead, and nobody has asked for its status
		}
	}
	t.Error("the child lives on")
}

// Ending the context kills what runs.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd, err := Command(ctx, t.TempDir(), testChild, "wait")
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil || EndedBy(cmd.ProcessState) != "killed" {
		t.Errorf("%v, %q", err, EndedBy(cmd.ProcessState))
	}
}
