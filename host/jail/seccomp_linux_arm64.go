package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// allowedHere are calls that are named differently on this architecture.
var allowedHere = []uint32{unix.SYS_FSTATAT, unix.SYS_GETRLIMIT}
