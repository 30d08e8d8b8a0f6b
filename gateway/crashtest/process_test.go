package crashtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// process is one run of the server.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read it after done
	ready  chan struct{}
	done   chan struct{} // it was reaped
	err    error         // of Wait, after done

	Invoke string `json:"invoke"`
	Admin  string `json:"admin"`
	Ops    string `json:"ops"`
}

// patience bounds what the tests wait for; nothing depends on how long it really takes.
const patience = 60 * time.Second

// fullDisk is the file that makes the disk of a data directory full.
func fullDisk(dir string) string { return dir + ".full" }

// launch starts a server and does not wait until it serves.
func launch(t testing.TB, dir string, mode audit.Durability) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe), ready: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+dir, diskEnv+"="+fullDisk(dir), modeEnv+"="+mode.String())
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = patience
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		if lines.Scan() && json.Unmarshal(lines.Bytes(), p) == nil {
			close(p.ready)
		}
		for lines.Scan() {
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// start launches a server and waits until it serves.
func start(t testing.TB, dir string, mode audit.Durability) *process {
	t.Helper()
	p := launch(t, dir, mode)
	select {
	case <-p.ready:
	case <-p.done:
		t.Fatalf("the server ended before it served: %v\n%s", p.err, p.stderr.String())
	case <-time.After(patience):
		t.Fatal("the server does not get ready")
	}
	return p
}

// kill ends the process as a power cut would end it for the programs, and reaps it. It may be
// called from anywhere and more than once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.stdin.Close()
}

func (p *process) dead() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end and expects it to end well.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("the server does not stop")
	}
	if p.err != nil {
		p.t.Errorf("the server did not stop cleanly: %v\n%s", p.err, p.stderr.String())
	}
}

// wasKilled holds that SIGKILL ended the process, and nothing before it did. Under the race detector
// the server has it too.
func (p *process) wasKilled() {
	p.t.Helper()
	if report := p.stderr.String(); strings.Contains(report, "DATA RACE") || strings.Contains(report, "panic") {
		p.t.Fatal(report)
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			return
		}
	}
	p.t.Fatalf("the server ended by itself: %v\n%s", p.err, p.stderr.String())
}
