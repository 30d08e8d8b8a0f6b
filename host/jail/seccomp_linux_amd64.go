package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// allowedHere are calls that only this architecture has.
var allowedHere = []uint32{
	unix.SYS_NEWFSTATAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_OPEN, unix.SYS_ACCESS, unix.SYS_MKDIR, unix.SYS_UNLINK,
	unix.SYS_RMDIR, unix.SYS_RENAME, unix.SYS_READLINK, unix.SYS_POLL, unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL,
	unix.SYS_TIME, unix.SYS_GETRLIMIT,
}
