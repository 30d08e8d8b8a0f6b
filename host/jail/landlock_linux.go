package jail

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock (Linux ≥ 5.13) gives an unprivileged thread rules about files, and later about TCP,
// abstract sockets and signals. Handled rights without a rule are denied. The rules belong to a
// thread and to what it makes, so a process of several threads is confined either by making the
// call on all of them, which Go can do in a binary without cgo, or by executing itself again after
// one thread was confined; that is [Restart].

const (
	// landlockFiles are the file rights of the first version.
	landlockFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// landlockOwn is what the private directory keeps: plain files and directories, nothing that
	// executes, no links, no devices, no sockets.
	landlockOwn = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landlockRun = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
)

// landlockRights says from which version of the interface on a right can be handled.
var landlockRights = []struct {
	version int
	attr    unix.LandlockRulesetAttr
	measure string // the line of the report this right stands for, if any
}{
	{version: 1, attr: unix.LandlockRulesetAttr{Handled_access_fs: landlockFiles}, measure: MeasureFiles},
	{version: 2, attr: unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER}},
	{version: 3, attr: unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE}},
	{version: 4, attr: unix.LandlockRulesetAttr{
		Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP,
	}, measure: MeasureTCP},
	{version: 5, attr: unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}},
	{version: 6, attr: unix.LandlockRulesetAttr{
		Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}, measure: MeasureScope},
}

// landlockVersion is the version of the interface, 0 where the kernel has none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// everyThread reports whether Go can make a system call on all threads of this process: not when
// cgo is linked in, because then there may be threads it does not know.
func everyThread() bool {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0)
	return errno == 0
}

// restrictFiles applies the file, TCP and scope rules to every thread.
func restrictFiles(r *Report, p *Policy) error {
	version := landlockVersion()
	applied, detail := false, ""
	switch {
	case version == 0:
		detail = "this kernel has no Landlock"
	case everyThread():
		ruleset, err := newRuleset(version, p.Dir)
		if err != nil {
			return err
		}
		defer unix.Close(ruleset)
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			return fmt.Errorf("jail: no new privileges on every thread: %w", errno)
		}
		if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
			return fmt.Errorf("jail: landlock on every thread: %w", errno)
		}
		applied, detail = true, "one directory"
	case p.Restarted:
		applied, detail = true, "one directory, and the files this program was loaded from"
	default:
		detail = "a cgo binary has to go through Restart"
	}
	if applied {
		if err := verifyFiles(); err != nil {
			return err
		}
	}
	for _, right := range landlockRights {
		switch {
		case right.measure == "":
		case applied && version >= right.version:
			r.add(right.measure, true, detail)
		case applied:
			r.add(right.measure, false, "Landlock here has version "+strconv.Itoa(version))
		default:
			r.add(right.measure, false, detail)
		}
	}
	return nil
}

// newRuleset makes a ruleset that handles everything this version can and allows the private
// directory. The caller closes it.
func newRuleset(version int, dir string) (int, error) {
	var attr unix.LandlockRulesetAttr
	for _, right := range landlockRights {
		if version >= right.version {
			attr.Handled_access_fs |= right.attr.Handled_access_fs
			attr.Handled_access_net |= right.attr.Handled_access_net
			attr.Scoped |= right.attr.Scoped
		}
	}
	// Invariant: attr outlives the call and is only read; a kernel that knows a shorter structure
	// accepts a longer one whose rest is zero, which it is for every right it does not have.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, fmt.Errorf("jail: landlock ruleset: %w", errno)
	}
	ruleset := int(fd)
	if dir != "" {
		if err := allow(ruleset, dir, landlockOwn&attr.Handled_access_fs); err != nil {
			_ = unix.Close(ruleset)
			return -1, err
		}
	}
	return ruleset, nil
}

// allow adds a rule for a path and what is below it.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("jail: %w", err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	// Invariant: rule outlives the call and is only read; the kernel's packed structure is a prefix
	// of Go's padded one.
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("jail: landlock rule: %w", errno)
	}
	return nil
}

// Restart executes the running binary again, with args and an empty environment, under the file,
// TCP and scope rules of [Enter]; descriptors without close-on-exec stay open. It is for binaries
// with cgo, whose threads Enter cannot reach, and costs them the right to read and run the files
// they are loaded from. Where it is not needed or the kernel has no Landlock it returns nil and has
// done nothing; where it succeeds it does not return.
func Restart(dir string, args []string) error {
	version := landlockVersion()
	if version == 0 || everyThread() {
		return nil
	}
	// The thread that is confined is the one that executes; it must not be any other.
	runtime.LockOSThread()
	ruleset, err := newRuleset(version, dir)
	if err != nil {
		return err
	}
	image, err := imageFiles()
	if err != nil {
		return err
	}
	for _, path := range image {
		if err := allow(ruleset, path, landlockRun); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("jail: no new privileges: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("jail: landlock: %w", errno)
	}
	return fmt.Errorf("jail: restart: %w", unix.Exec(selfPath, args, []string{}))
}

// imageFiles lists the files this process is mapped from: the binary and its shared libraries.
func imageFiles() ([]string, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, fmt.Errorf("jail: %w", err)
	}
	defer f.Close()
	files := []string{selfPath}
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, path, ok := strings.Cut(lines.Text(), " /")
		if path = "/" + path; !ok || seen[path] {
			continue
		}
		seen[path] = true
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			if err == nil || errors.Is(err, os.ErrNotExist) {
				continue // a device, or the binary itself, replaced on disk while it runs
			}
			return nil, fmt.Errorf("jail: %w", err)
		}
		files = append(files, path)
	}
	return files, lines.Err()
}
