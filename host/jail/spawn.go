package jail

import (
	"context"
	"os"
	"os/exec"
)

// Command returns a command that runs the calling process's own binary with args (the first is
// argv[0]), an empty environment and dir as working directory. The end of ctx, and on Linux the end
// of this process, kill the child and everything in its group.
//
// Start and wait on one goroutine that is locked to its thread: "the parent died" means the thread
// that started the child.
func Command(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Dir = args, dir
	cmd.Env = []string{} // nil would inherit
	configure(cmd)
	return cmd, nil
}

// EndedBy names the signal that ended a process; it is empty when the process exited.
func EndedBy(state *os.ProcessState) string { return signalName(state) }
