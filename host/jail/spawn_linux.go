package jail

import (
	"os/exec"
	"syscall"
)

// selfPath is the running image even when the file it came from was replaced or removed, which is
// what an upgrade in place does.
const selfPath = "/proc/self/exe"

func executable() (string, error) { return selfPath, nil }

func configure(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
}
