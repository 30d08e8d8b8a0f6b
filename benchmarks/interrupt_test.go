package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// actAsProgram makes the test binary the command.
const actAsProgram = "BENCHMARKS_TEST_COMMAND"

// An interrupt ends the command, its children and theirs, and takes its files away. The soak has
// all of these within seconds; a run is started and ended by the same lines.
func TestInterruptLeavesNothing(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) { interrupted(t, signal) })
	}
}

func interrupted(t *testing.T, signal syscall.Signal) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	cmd := exec.Command(self, "-soak", "10m")
	cmd.Env = append(os.Environ(), actAsProgram+"=1", "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what is left can be found
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := -cmd.Process.Pid
	defer syscall.Kill(group, syscall.SIGKILL)
	hang := time.AfterFunc(5*time.Minute, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	defer hang.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "soak: ") {
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) == 0 {
		t.Fatalf("it keeps no files where this test looks: %v, %v", left, err)
	}
	// As a terminal does, to all of them.
	if err := syscall.Kill(group, signal); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	var failed *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &failed) || failed.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("it left files: %v, %v", left, err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := members(t, cmd.Process.Pid)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it left processes: %v", left)
		}
	}
}

// members are the processes of a group that still run. One that is dead and that nobody has looked
// at yet does not.
func members(t *testing.T, group int) []string {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state ppid pgrp …; the name may have spaces.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if fields[0] != "Z" && fields[0] != "X" && fields[2] == strconv.Itoa(group) {
			out = append(out, string(raw))
		}
	}
	return out
}
