//go:build amd64 || arm64

package jail

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets into struct seccomp_data; arguments are eight bytes, low half first on both
// architectures.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// allowed are the system calls that the Go runtime, the C library of a cgo build and a program that
// computes and keeps a few files need. Everything else fails with EPERM, which Go reports as an
// ordinary error; there is no socket, no new program, no tracing, no mount and no ioctl here.
var allowed = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_OPENAT, unix.SYS_CLOSE, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FCNTL,
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_GETDENTS64, unix.SYS_MKDIRAT,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_READLINKAT, unix.SYS_FACCESSAT,
	unix.SYS_FACCESSAT2, unix.SYS_GETCWD, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK,
	unix.SYS_MINCORE, unix.SYS_MEMBARRIER,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_RESTART_SYSCALL,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	unix.SYS_PPOLL,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID,
	unix.SYS_GETEGID, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}, allowedHere...)

// judged are system calls that are allowed in one form.
func judged(pid uint32) []rule {
	return []rule{
		// A thread, never a process. clone3 keeps its flags in memory where a filter cannot look; a
		// C library that is told it does not exist uses clone.
		{unix.SYS_CLONE, []unix.SockFilter{load(argLow(0)), jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 1), answer(unix.SECCOMP_RET_ALLOW)}},
		{unix.SYS_CLONE3, []unix.SockFilter{fail(unix.ENOSYS)}},
		// Naming threads and memory.
		{unix.SYS_PRCTL, []unix.SockFilter{
			load(argLow(0)), jump(unix.BPF_JEQ, unix.PR_SET_NAME, 1, 0), jump(unix.BPF_JEQ, unix.PR_SET_VMA, 0, 1),
			answer(unix.SECCOMP_RET_ALLOW),
		}},
		// Reading a limit of its own, never setting one.
		{unix.SYS_PRLIMIT64, []unix.SockFilter{
			load(argLow(2)), jump(unix.BPF_JEQ, 0, 0, 3), load(argHigh(2)), jump(unix.BPF_JEQ, 0, 0, 1),
			answer(unix.SECCOMP_RET_ALLOW),
		}},
		// Signals to its own threads: the runtime preempts goroutines so.
		{unix.SYS_TGKILL, []unix.SockFilter{load(argLow(0)), jump(unix.BPF_JEQ, pid, 0, 1), answer(unix.SECCOMP_RET_ALLOW)}},
	}
}

type rule struct {
	number uint32
	body   []unix.SockFilter
}

func argLow(n int) uint32  { return uint32(dataArgs + 8*n) }
func argHigh(n int) uint32 { return uint32(dataArgs + 8*n + 4) }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func answer(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

func fail(errno unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// program is the filter. Each rule is a jump over its own body, so that no offset exceeds the eight
// bits a jump has, and every path ends in an answer.
func program(pid uint32) []unix.SockFilter {
	prog := []unix.SockFilter{
		load(dataArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		answer(unix.SECCOMP_RET_KILL_PROCESS), // another architecture's numbering
	}
	for _, r := range judged(pid) {
		body := append(r.body, fail(unix.EPERM))
		prog = append(prog, load(dataNumber), jump(unix.BPF_JEQ, r.number, 0, uint8(len(body))))
		prog = append(prog, body...)
	}
	prog = append(prog, load(dataNumber))
	for _, number := range allowed {
		prog = append(prog, jump(unix.BPF_JEQ, number, 0, 1), answer(unix.SECCOMP_RET_ALLOW))
	}
	// Also where amd64's x32 numbers end: their bit 30 makes them equal to nothing above.
	return append(prog, fail(unix.EPERM))
}

// filterSystemCalls installs the filter on every thread at once, cgo's included
// (SECCOMP_FILTER_FLAG_TSYNC), and no_new_privs with it.
func filterSystemCalls(r *Report, _ *Policy) error {
	filter := program(uint32(unix.Getpid()))
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Invariant: prog points to filter, both live until after the call, the kernel copies them.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	switch errno {
	case 0:
		r.add(MeasureSystemCalls, true, fmt.Sprintf("%d allowed, the rest fails", len(allowed)+len(judged(0))-1))
	case unix.ENOSYS, unix.EINVAL:
		r.add(MeasureSystemCalls, false, "this kernel has no system call filter")
	default:
		return fmt.Errorf("jail: system call filter: %w", errno)
	}
	return nil
}
