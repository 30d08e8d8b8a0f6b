//go:build unix && !linux

package jail

import (
	"os"
	"os/exec"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

func configure(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
}
