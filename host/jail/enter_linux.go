package jail

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Enter confines the calling process according to p, on all its threads and for good. Call it as
// early as can be, from the main goroutine, before any untrusted byte is read. After an error the
// process is in an undefined state of partial confinement and must exit.
//
// A measure that this kernel or build does not have is reported, not an error; a measure it has and
// that fails is an error. The order matters: descriptors first, because what a later step opens
// must not be mistaken for inherited; system calls last, because the filter ends the ability to
// take any other step.
func Enter(p Policy) (Report, error) {
	var r Report
	steps := []func(*Report, *Policy) error{
		closeInherited, signalOnParentDeath, refusePrivileges, restrictFiles, limitResources, refuseDump, filterSystemCalls,
	}
	for _, step := range steps {
		if err := step(&r, &p); err != nil {
			return r, err
		}
	}
	return r, nil
}

// closeInherited closes what came through exec and is not wanted.
func closeInherited(r *Report, p *Policy) error {
	inherited, err := Inherited()
	if err != nil {
		return err
	}
	closed := 0
	for _, fd := range inherited {
		if slices.Contains(p.Keep, fd) {
			continue
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("jail: closing an inherited descriptor: %w", err)
		}
		closed++
	}
	r.add(MeasureDescriptors, true, strconv.Itoa(closed)+" closed")
	return nil
}

// Inherited returns the descriptors beyond 0, 1 and 2 that came through exec. One that survived exec
// cannot carry close-on-exec, and everything Go opens does: the flag tells the runtime's own
// descriptors (its poller, the processor quota it watches), which must live, from inherited ones.
// It works under a jail too, where /proc cannot be read.
func Inherited() ([]int, error) {
	open, err := listed()
	if err != nil {
		if open, err = polled(); err != nil {
			return nil, fmt.Errorf("jail: which descriptors are open: %w", err)
		}
	}
	return slices.DeleteFunc(open, func(fd int) bool {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return fd <= 2 || err != nil || flags&unix.FD_CLOEXEC != 0
	}), nil
}

// listed are the open descriptors as /proc lists them.
func listed() (open []int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			open = append(open, fd)
		}
	}
	return open, err
}

// descriptors is how many numbers polled asks for. The kernel gives the lowest that is free, so what
// was inherited has a small one.
const descriptors = 1 << 16

// polled are the open descriptors as poll tells them from numbers that nothing is open under: a
// thousand in a system call, where asking for each takes longer than compiling a small module.
func polled() (open []int, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	// poll takes no more entries at once than may be open, whatever their numbers.
	asked := make([]unix.PollFd, max(1, min(limit.Cur, 1<<10)))
	for from := 0; from < descriptors; from += len(asked) {
		for n := range asked {
			asked[n] = unix.PollFd{Fd: int32(from + n)}
		}
		if err := ask(asked); err != nil {
			return nil, err
		}
		for _, a := range asked {
			if a.Revents&unix.POLLNVAL == 0 {
				open = append(open, int(a.Fd))
			}
		}
	}
	return open, nil
}

// ask polls without waiting.
func ask(fds []unix.PollFd) error {
	for {
		// Not poll: the filter has only the newer call, which every architecture has.
		_, err := unix.Ppoll(fds, &unix.Timespec{}, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// signalOnParentDeath repeats what [Configure] asked for: the setting belongs to a thread, and is
// lost when another than the first one executes a new image, as in [Restart].
func signalOnParentDeath(r *Report, _ *Policy) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("jail: parent death signal: %w", err)
	}
	r.add(MeasureParentDeath, true, "SIGKILL")
	return nil
}

// refusePrivileges sets no_new_privs on the calling thread, which Landlock and seccomp ask for. The
// other threads get it with the file rules or with the filter.
func refusePrivileges(r *Report, _ *Policy) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("jail: no new privileges: %w", err)
	}
	r.add(MeasureNoPrivileges, true, "")
	return nil
}

// limitResources sets soft and hard limits to the same value, so that none can be raised again. Only
// processor time has a second between them, in which the process can say which limit it was.
func limitResources(r *Report, p *Policy) error {
	type limit struct {
		name     string
		resource int
		value    uint64
		set      bool
		grace    uint64 // hard over soft
	}
	if p.CPU > 0 {
		exitAtCPULimit()
	}
	seconds := uint64((p.CPU + time.Second - 1) / time.Second)
	limits := []limit{
		{MeasureCore, unix.RLIMIT_CORE, 0, true, 0},
		{MeasureOpenFiles, unix.RLIMIT_NOFILE, p.Descriptors, p.Descriptors > 0, 0},
		{MeasureFileSize, unix.RLIMIT_FSIZE, p.FileSize, p.FileSize > 0, 0},
		{MeasureCPU, unix.RLIMIT_CPU, seconds, p.CPU > 0, 1},
		{MeasureAddressSpace, unix.RLIMIT_AS, p.AddressSpace, p.AddressSpace > 0 && !sanitized, 0},
	}
	for _, l := range limits {
		switch {
		case l.set:
			if err := unix.Prlimit(0, l.resource, &unix.Rlimit{Cur: l.value, Max: l.value + l.grace}, nil); err != nil {
				return fmt.Errorf("jail: %s: %w", l.name, err)
			}
			r.add(l.name, true, strconv.FormatUint(l.value, 10))
		case l.resource == unix.RLIMIT_AS && sanitized:
			r.add(l.name, false, "a binary built with a sanitizer cannot carry it")
		default:
			r.add(l.name, false, "not asked for")
		}
	}
	return nil
}

// exitAtCPULimit exits at the soft limit, which Go would ignore. Where that takes longer than a
// second, the hard limit kills.
func exitAtCPULimit() {
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU)
	go func() {
		<-over
		os.Exit(ExitCPU)
	}()
}

// refuseDump keeps the process's memory from core files and from other processes of the user.
func refuseDump(r *Report, _ *Policy) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("jail: undumpable: %w", err)
	}
	r.add(MeasureUndumpable, true, "")
	return nil
}

// verifyFiles proves from inside that the file rules bite: the root directory, which everybody may
// list, must not open.
func verifyFiles() error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	return fmt.Errorf("jail: the file rules are set and do not bite (%v)", err)
}
