package main

// area is a piece of memory for results, in words because some must be aligned.
type area [64]uint64

func (a *area) at(word int) *uint64 { return &a[word] }

// wasi calls the functions of the subset and notes what each answered. Left out are those
// that the Go runtime calls for os.Args and os.Environ, so that the module stays within 64
// imports, and proc_exit, which would end the probe. Descriptors go past the three that exist.
func wasi() map[string]int32 {
	var a area
	const stdin, beyond = 0, 3
	got := map[string]int32{
		"clock_res_get":       clockResGet(0, a.at(7)),
		"clock_time_get":      clockTimeGet(0, 0, a.at(8)),
		"random_get":          randomGet(a.at(9), 8),
		"sched_yield":         schedYield(),
		"fd_close":            fdClose(beyond),
		"fd_seek":             fdSeek(beyond, 0, 0, a.at(10)),
		"fd_fdstat_get":       fdFdstatGet(beyond, a.at(11)),
		"fd_fdstat_set_flags": fdFdstatSetFlags(beyond, 0),
		"fd_prestat_get":      fdPrestatGet(beyond, a.at(15)),
		"fd_prestat_dir_name": fdPrestatDirName(beyond, a.at(16), 8),
		// One empty vector each: nothing is read or written.
		"fd_read":  fdRead(stdin, a.at(20), 1, a.at(22)),
		"fd_write": fdWrite(beyond, a.at(20), 1, a.at(22)),
		// No subscription: EINVAL.
		"poll_oneoff": pollOneoff(a.at(24), a.at(40), 0, a.at(60)),
	}
	return got
}

//go:wasmimport wasi_snapshot_preview1 clock_res_get
func clockResGet(id uint32, out *uint64) int32

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func clockTimeGet(id uint32, precision int64, out *uint64) int32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(buf *uint64, n uint32) int32

//go:wasmimport wasi_snapshot_preview1 sched_yield
func schedYield() int32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
func pollOneoff(in, out *uint64, n uint32, count *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_read
func fdRead(fd uint32, vectors *uint64, n uint32, count *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_write
func fdWrite(fd uint32, vectors *uint64, n uint32, count *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd uint32) int32

//go:wasmimport wasi_snapshot_preview1 fd_seek
func fdSeek(fd uint32, offset int64, whence uint32, out *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_get
func fdFdstatGet(fd uint32, out *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_flags
func fdFdstatSetFlags(fd, flags uint32) int32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
func fdPrestatGet(fd uint32, out *uint64) int32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_dir_name
func fdPrestatDirName(fd uint32, path *uint64, n uint32) int32
