package wasi

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// fullConstant are the functions that tell every initialiser the same and change nothing but its memory
// (S13), as long as it has asked nothing else.
var fullConstant = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true, "sched_yield": true,
	"fd_prestat_get": true, "fd_prestat_dir_name": true, "fd_fdstat_get": true, "fd_filestat_get": true, "fd_read": true,
	"fd_tell": true, "fd_advise": true,
}

// fullHandlers has an entry for each row that is not refused; a test holds it to that. Every pointer of a
// call was looked at before.
var fullHandlers = map[string]handler{
	"args_get":                argsGet,
	"args_sizes_get":          argsSizesGet,
	"environ_get":             nothingListed,
	"environ_sizes_get":       nothingThere,
	"clock_res_get":           clockRes,
	"clock_time_get":          clockTime,
	"random_get":              randomGet,
	"sched_yield":             bareHandlers["sched_yield"],
	"proc_exit":               procExit,
	"poll_oneoff":             full(func(ctx context.Context, v *boundary.Visit, t *table) int32 { return pollOneoff(ctx, v, t.ready(v)) }),
	"fd_read":                 fdRead,
	"fd_write":                fdWrite,
	"fd_pread":                owned(fdPread),
	"fd_pwrite":               owned(fdPwrite),
	"fd_close":                full(fdClose),
	"fd_renumber":             full(fdRenumber),
	"fd_fdstat_get":           owned(fdstatGet),
	"fd_fdstat_set_flags":     owned(fdstatSetFlags),
	"fd_fdstat_set_rights":    owned(fdstatSetRights),
	"fd_prestat_get":          full(prestatGet),
	"fd_prestat_dir_name":     full(prestatDirName),
	"fd_advise":               owned(fdAdvise),
	"fd_allocate":             owned(fdAllocate),
	"fd_datasync":             owned(fdSync),
	"fd_sync":                 owned(fdSync),
	"fd_seek":                 owned(fdSeek),
	"fd_tell":                 owned(fdTell),
	"fd_filestat_get":         owned(fdFilestatGet),
	"fd_filestat_set_size":    owned(fdFilestatSetSize),
	"fd_filestat_set_times":   owned(fdFilestatSetTimes),
	"fd_readdir":              owned(fdReaddir),
	"path_open":               owned(pathOpen),
	"path_create_directory":   owned(pathCreateDirectory),
	"path_filestat_get":       owned(pathFilestatGet),
	"path_filestat_set_times": owned(pathFilestatSetTimes),
	"path_readlink":           owned(pathReadlink),
	"path_remove_directory":   owned(pathRemoveDirectory),
	"path_unlink_file":        owned(pathUnlinkFile),
	"path_rename":             owned(pathRename),
}

// errnos is what WASI calls what host calls answer.
var errnos = map[abi.Errno]int32{
	abi.EINVAL: abi.WASIInval, abi.EFAULT: abi.WASIFault, abi.EDENIED: abi.WASINotcapable, abi.ENOENT: abi.WASINoent,
	abi.EEXIST: abi.WASIExist, abi.EVERSION: abi.WASIStale, abi.EREAD: abi.WASIStale, abi.EDELETED: abi.WASIStale,
	abi.ENOTEMPTY: abi.WASINotempty, abi.ENOTREG: abi.WASINotdir, abi.ETOOBIG: abi.WASIFbig, abi.EQUOTA: abi.WASINospc,
	abi.EUNAVAIL: abi.WASIIo, abi.ETIMEOUT: abi.WASITimedout, abi.ECANCELED: abi.WASICanceled, abi.EIO: abi.WASIIo,
	abi.ECONFLICT: abi.WASIStale, abi.EINTERNAL: abi.WASIIo,
}

// errnoOf is the errno of what a host call returned.
func errnoOf(result int64) int32 {
	if result >= 0 {
		return abi.WASISuccess
	}
	if e, ok := errnos[abi.Errno(-result)]; ok {
		return e
	}
	return abi.WASIIo
}
