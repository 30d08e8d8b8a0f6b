// Package files is the workspace of a session: the file functions of the ABI over real
// directories.
//
// A workspace is the directory DIR/workspaces/<id>, where id is a name the gateway made. It
// is entered only through os.Root, one component at a time, and what is opened is compared
// with what was looked at. Symbolic links, files with more than one name, devices, pipes and
// sockets are never followed, opened or removed, wherever on a path they stand (M15, PF-C1,
// PF-C3); no function of this package makes one that a guest could see.
//
// # Resources
//
// The globs of a grant are matched against the canonical path of [Clean], and against the
// key where keys are concerned; package glob has their language. One list serves both, so
// that the pattern that lies within two grants is found by comparing patterns alone. No globs
// at all means the whole workspace.
//
// # Information flow (S5)
//
// Every file and directory has a label, fixed when it is made, which is the label of the
// invocation that makes it. Walking a path reads each directory on it and raises the
// invocation to their labels; making, renaming and removing writes the directory that has
// the name and needs a label no higher than the directory's. Reading, listing, searching and
// measuring raise to the labels of the files they show. What is above the invocation's
// ceiling looks exactly like what is absent, and takes no part in counts, limits or pages.
// One thing cannot be hidden: a name that is taken cannot be given away again, so making a
// file where a hidden one stands is FILE_EXISTS. Since whoever makes a name is cleared no
// higher than its directory, only the operator can put a hidden name into a visible
// directory.
//
// Labels and versions are kept with a fingerprint of the file (size, modification and change
// time, inode). A file whose fingerprint is not the one recorded was changed behind the
// gateway's back: it gets a new version, and the workspace's import label joined to its own.
// A workspace that is copied to another disk gets new inodes and is imported whole.
//
// # Writing
//
// Content goes to a temporary file in the same directory, is flushed, and takes its name
// in one step; the directory is flushed before the call returns. A crash leaves the old file
// or the new one, never a part; an acknowledged write survives it. The read ledger (M3) is
// kept in memory of the live process on purpose (M9).
//
// The package refuses to know who may call it and why, and where labels are kept.
package files
