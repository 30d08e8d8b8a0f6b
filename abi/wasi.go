package abi

import "strings"

// WASIFunction is one row of WASI preview 1, which is here whole. Signatures are those of
// wasi_snapshot_preview1; the result is an i32 WASI errno unless NoResult is set.
//
// A native biome has the rows that are Native, so that language runtimes start: none of them
// reaches outside the invocation, and there they do what Subset says. A biome of [FaceWASI] has
// all of them, and there they do what Does says; a row that is Refused answers one errno,
// whatever it is asked.
type WASIFunction struct {
	Name     string
	Params   []Param
	Pointers []WASIPointer
	NoResult bool
	Native   bool
	Subset   string // what it does for a native biome; "" when that is the same
	Does     string
	Refused  int32 // the errno; 0: the function is there
	Price    Price // in units of fuel, as a host function's; what it asks of host functions has their price besides
}

// WASIPointer says what a parameter points to: Size bytes, or, with Count the index of another
// parameter, that many times Size bytes.
type WASIPointer struct {
	At    int
	Size  uint32
	Count int // -1: one
}

// WASI errno values (wasi_snapshot_preview1).
const (
	WASISuccess     int32 = 0
	WASI2big        int32 = 1
	WASIAgain       int32 = 6
	WASIBadf        int32 = 8
	WASIBusy        int32 = 10
	WASICanceled    int32 = 11
	WASIExist       int32 = 20
	WASIFault       int32 = 21
	WASIFbig        int32 = 22
	WASIIlseq       int32 = 25
	WASIInval       int32 = 28
	WASIIo          int32 = 29
	WASIIsdir       int32 = 31
	WASILoop        int32 = 32
	WASIMfile       int32 = 33
	WASINametoolong int32 = 37
	WASINoent       int32 = 44
	WASINomem       int32 = 48
	WASINospc       int32 = 51
	WASINosys       int32 = 52
	WASINotdir      int32 = 54
	WASINotempty    int32 = 55
	WASINotsup      int32 = 58
	WASIOverflow    int32 = 61
	WASIPerm        int32 = 63
	WASISpipe       int32 = 70
	WASIStale       int32 = 72
	WASITimedout    int32 = 73
	WASINotcapable  int32 = 76
)

// wasi makes a row. Of the words of params, `name` is an i32, `name8` an i64, `name>4` a pointer to
// 4 bytes (0: as many as there is to say), `name*` a pointer and the number of bytes there, and `name[8` a pointer and the number
// of things of 8 bytes there.
func wasi(name, params, does string, more ...func(*WASIFunction)) WASIFunction {
	f := WASIFunction{Name: name, Does: does, Price: Price{100, 0}}
	for word := range strings.FieldsSeq(params) {
		at := len(f.Params)
		switch i := strings.IndexAny(word, ">*["); {
		case i >= 0 && word[i] == '>':
			f.Pointers = append(f.Pointers, WASIPointer{at, bytesOf(word[i+1:]), -1})
			f.Params = append(f.Params, Param{word[:i] + "_ptr", I32})
		case i >= 0:
			size, count := uint32(1), "_len"
			if word[i] == '[' {
				size, count = bytesOf(word[i+1:]), "_count"
			}
			f.Pointers = append(f.Pointers, WASIPointer{at, size, at + 1})
			f.Params = append(f.Params, Param{word[:i] + "_ptr", I32}, Param{word[:i] + count, I32})
		case strings.HasSuffix(word, "8"):
			f.Params = append(f.Params, Param{strings.TrimSuffix(word, "8"), I64})
		default:
			f.Params = append(f.Params, Param{word, I32})
		}
	}
	for _, m := range more {
		m(&f)
	}
	return f
}

func bytesOf(digits string) (n uint32) {
	for _, d := range digits {
		n = n*10 + uint32(d-'0')
	}
	return n
}

// native marks a row of the subset, and says what it does there if that is not the same.
func native(subset string) func(*WASIFunction) {
	return func(f *WASIFunction) { f.Native, f.Subset = true, subset }
}

func refused(errno int32) func(*WASIFunction) {
	return func(f *WASIFunction) { f.Refused = errno }
}

// counted says that pointers point to as many things as a parameter tells.
func counted(by int, pointers ...int) func(*WASIFunction) {
	return func(f *WASIFunction) {
		for _, i := range pointers {
			f.Pointers[i].Count = by
		}
	}
}

func costs(base, perKiB uint64) func(*WASIFunction) {
	return func(f *WASIFunction) { f.Price = Price{base, perKiB} }
}

const (
	noSockets = "there are no sockets"
	noLinks   = "there are no links, so that no name leads anywhere but to itself"
	noTimes   = "accepted for what is open and can be written, and forgotten: the times of a file are the host's"
)

var wasiTable = []WASIFunction{
	wasi("args_get", "argv>0 argv_buf>0", "the biome's name, then the arguments that the manifest gives the capability", native("no arguments")),
	wasi("args_sizes_get", "argc>4 argv_buf_size>4", "as args_get", native("no arguments")),
	wasi("environ_get", "environ>0 environ_buf>0", "no environment", native("")),
	wasi("environ_sizes_get", "environ_count>4 environ_buf_size>4", "no environment", native("")),
	wasi("clock_res_get", "id resolution>8", "the coarse resolution of time_now", native("")),
	wasi("clock_time_get", "id precision8 time>8", "as time_now", native("")),
	wasi("fd_advise", "fd offset8 len8 advice", "nothing; a directory answers badf"),
	wasi("fd_allocate", "fd offset8 len8", "makes a file that is open for writing at least that long"),
	wasi("fd_close", "fd", "closes; the last descriptor of a file that was written writes it: STALE when it changed meanwhile", native("answers badf")),
	wasi("fd_datasync", "fd", "as fd_sync"),
	wasi("fd_fdstat_get", "fd stat>24", "kind, flags and rights", native("descriptors 0 to 2 are character devices; others answer badf")),
	wasi("fd_fdstat_set_flags", "fd flags", "append, and sync, after which each write is synchronised; nonblock means nothing", native("answers badf")),
	wasi("fd_fdstat_set_rights", "fd base8 inheriting8", "takes rights away and gives none"),
	wasi("fd_filestat_get", "fd stat>64", "kind and size; the inode is made of the path, and there are no times"),
	wasi("fd_filestat_set_size", "fd size8", "cuts a file that is open for writing, or makes it longer"),
	wasi("fd_filestat_set_times", "fd atim8 mtim8 flags", noTimes),
	wasi("fd_pread", "fd iovs[8 offset8 nread>4", "reads at an offset of a file", costs(500, 20)),
	wasi("fd_prestat_get", "fd prestat>8", "descriptor 3 is the workspace, if the session has one, under the name /", native("answers badf: there are no directories")),
	wasi("fd_prestat_dir_name", "fd path*", "as fd_prestat_get", native("answers badf")),
	wasi("fd_pwrite", "fd ciovs[8 offset8 nwritten>4", "writes at an offset of a file", costs(500, 50)),
	wasi("fd_read", "fd iovs[8 nread>4", "reads from the input or a file", native("descriptor 0 is empty; others answer badf"), costs(100, 20)),
	wasi("fd_readdir", "fd buf* cookie8 used>4", "the names in a directory, in order, after . and ..", costs(500, 20)),
	wasi("fd_renumber", "fd to", "moves a descriptor over another, which is closed"),
	wasi("fd_seek", "fd offset8 whence position>8", "moves in a file; a stream answers spipe", native("answers badf")),
	wasi("fd_sync", "fd", "writes a file that was written to the workspace: STALE when it changed meanwhile"),
	wasi("fd_tell", "fd position>8", "where a file is read and written next"),
	wasi("fd_write", "fd ciovs[8 nwritten>4", "descriptor 1 is the output, 2 goes to the log, others are files", native("descriptors 1 and 2 go to the log; others answer badf"), costs(500, 50)),
	wasi("path_create_directory", "fd path*", "as file_mkdir, in a directory that is there"),
	wasi("path_filestat_get", "fd flags path* stat>64", "as file_stat"),
	wasi("path_filestat_set_times", "fd flags path* atim8 mtim8 fst_flags", noTimes),
	wasi("path_link", "old_fd old_flags old_path* new_fd new_path*", noLinks, refused(WASINotsup)),
	wasi("path_open", "fd dirflags path* oflags rights8 inheriting8 fdflags opened>4", "opens a file or directory below a directory; the version it has then is the one that is written over", costs(500, 0)),
	wasi("path_readlink", "fd path* buf* used>4", "answers inval for what is there: none of it is a link"),
	wasi("path_remove_directory", "fd path*", "as file_remove, of an empty directory"),
	wasi("path_rename", "fd old_path* new_fd new_path*", "as file_move; a file in the way is replaced, a directory is not moved: notsup"),
	wasi("path_symlink", "old_path* fd new_path*", noLinks, refused(WASINotsup)),
	wasi("path_unlink_file", "fd path*", "as file_remove, of a file"),
	wasi("poll_oneoff", "in>48 out>32 subscriptions nevents>4", "sleeps at most until the deadline; descriptors are ready at once", native("sleeps at most until the deadline; descriptors answer badf"), costs(1000, 0), counted(2, 0, 1)),
	wasi("proc_exit", "code", "ends the invocation: 0 is success, and every other code GUEST_EXIT", native("ends the invocation"), func(f *WASIFunction) { f.NoResult = true }),
	wasi("proc_raise", "signal", "there are no signals", refused(WASINotsup)),
	wasi("random_get", "buf*", "as random, from the same budget", native(""), costs(200, 200)),
	wasi("sched_yield", "", "nothing", native("")),
	wasi("sock_accept", "fd flags accepted>4", noSockets, refused(WASIBadf)),
	wasi("sock_recv", "fd data[8 flags received>4 out_flags>2", noSockets, refused(WASIBadf)),
	wasi("sock_send", "fd data[8 flags sent>4", noSockets, refused(WASIBadf)),
	wasi("sock_shutdown", "fd how", noSockets, refused(WASIBadf)),
}

// WASIFunctions returns WASI preview 1 in the order of names. The caller must not change it.
func WASIFunctions() []WASIFunction { return wasiTable }

var nativeWASI = func() (out []WASIFunction) {
	for _, f := range wasiTable {
		if f.Native {
			out = append(out, f)
		}
	}
	return out
}()

// NativeWASI returns the rows that a native biome has. The caller must not change them.
func NativeWASI() []WASIFunction { return nativeWASI }

var wasiIndex = func() map[string]*WASIFunction {
	m := make(map[string]*WASIFunction, len(wasiTable))
	for i := range wasiTable {
		m[wasiTable[i].Name] = &wasiTable[i]
	}
	return m
}()

// WASIFunctionByName finds a row of WASI preview 1.
func WASIFunctionByName(name string) (*WASIFunction, bool) { f, ok := wasiIndex[name]; return f, ok }

// ForNative says what the function does for a native biome, which has it.
func (f *WASIFunction) ForNative() string {
	if f.Subset != "" {
		return f.Subset
	}
	return f.Does
}

// Signature is the function's type.
func (f *WASIFunction) Signature() Signature {
	s := Signature{Params: typesOf(f.Params)}
	if !f.NoResult {
		s.Results = []ValueType{I32}
	}
	return s
}
