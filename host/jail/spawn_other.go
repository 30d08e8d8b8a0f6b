//go:build !unix

package jail

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

func configure(*exec.Cmd) {}

func signalName(*os.ProcessState) string { return "" }
