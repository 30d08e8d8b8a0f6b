//go:build amd64 || arm64

package jail

import (
	"testing"

	"golang.org/x/sys/unix"
)

// evaluate runs a filter over one system call, as the kernel does.
func evaluate(t *testing.T, prog []unix.SockFilter, number, arch uint32, args ...uint64) uint32 {
	t.Helper()
	word := func(offset uint32) uint32 {
		switch {
		case offset == dataNumber:
			return number
		case offset == dataArch:
			return arch
		case offset >= dataArgs:
			n := (offset - dataArgs) / 8
			if int(n) >= len(args) {
				return 0
			}
			return uint32(args[n] >> (8 * ((offset - dataArgs) % 8)))
		}
		t.Fatalf("load at %d", offset)
		return 0
	}
	var acc uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = word(in.K)
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = acc == in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = acc&in.K != 0
		default:
			t.Fatalf("instruction %#x", in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

func TestProgram(t *testing.T) {
	const pid = 4242
	allow, deny := uint32(unix.SECCOMP_RET_ALLOW), uint32(unix.SECCOMP_RET_ERRNO)|uint32(unix.EPERM)
	prog := program(pid)
	if len(prog) > unix.BPF_MAXINSNS {
		t.Fatalf("%d instructions", len(prog))
	}
	for _, tt := range []struct {
		name   string
		number uint32
		args   []uint64
		want   uint32
	}{
		{"read", unix.SYS_READ, nil, allow},
		{"socket", unix.SYS_SOCKET, nil, deny},
		{"execve", unix.SYS_EXECVE, nil, deny},
		{"execveat", unix.SYS_EXECVEAT, nil, deny},
		{"ptrace", unix.SYS_PTRACE, nil, deny},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, nil, deny},
		{"a number from the future", 4000, nil, deny},
		{"a number of the x32 face", 0x40000000 | unix.SYS_READ, nil, deny},
		{"clone of a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow},
		{"clone of a process", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, deny},
		{"clone3", unix.SYS_CLONE3, nil, uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)},
		{"name a thread", unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME}, allow},
		{"name memory", unix.SYS_PRCTL, []uint64{unix.PR_SET_VMA}, allow},
		{"drop the parent's signal", unix.SYS_PRCTL, []uint64{unix.PR_SET_PDEATHSIG}, deny},
		{"read a limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_AS, 0, 1 << 40}, allow},
		{"set a limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_AS, 1 << 40, 0}, deny},
		{"set a limit from a low address", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_AS, 4096, 0}, deny},
		{"signal an own thread", unix.SYS_TGKILL, []uint64{pid, pid + 1, 23}, allow},
		{"signal another process", unix.SYS_TGKILL, []uint64{pid + 1, pid + 1, 9}, deny},
		{"kill", unix.SYS_KILL, []uint64{pid, 9}, deny},
	} {
		if got := evaluate(t, prog, tt.number, auditArch, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	if got := evaluate(t, prog, unix.SYS_READ, auditArch+1); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("another architecture: %#x", got)
	}
}
