package files

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// Labels keeps the records of workspaces. Implementations are safe for concurrent use;
// files makes sure that one workspace has one writer.
type Labels interface {
	// Load calls fn for every record of a workspace, in any order.
	Load(ctx context.Context, workspace string, fn func(path string, r Record) error) error
	// Apply makes changes durable before it returns nil. Up to 100 changes are applied all
	// or none; more may be applied in parts, in order.
	Apply(ctx context.Context, workspace string, changes []Change) error
}

// Change sets the record of a path, or removes it when Record is nil.
type Change struct {
	Path   string
	Record *Record
}

// Record is what is known of one file or directory. The workspace's own directory has the
// path [RootPath].
type Record struct {
	Directory bool               `json:"directory,omitempty"`
	Label     abi.Classification `json:"label"`
	// Import labels what is changed behind the gateway's back; only the root's record has it.
	Import abi.Classification `json:"import,omitempty"`
	State
	// Next is the state a change that has begun will lead to. After a crash the file is in
	// one of the two.
	Next *State `json:"next,omitempty"`
	// From is the path that a move which has begun takes the file from.
	From string `json:"from,omitempty"`
}

// State is one content of a file and how the file system describes it. Version is random
// and says nothing of the content (S5). Times are nanoseconds since 1970.
type State struct {
	Version  string `json:"version,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Inode    uint64 `json:"inode,omitempty"`
	Modified int64  `json:"modified,omitempty"`
	// Changed is 0 while it is not known yet: a rename changes it.
	Changed int64 `json:"changed,omitempty"`
}

// describes reports whether now is this state as the file system shows it. An expected
// directory is described by being one when its inode is not known yet. Inodes are used
// again, so a directory removed and made anew from outside may pass for the old one; what is
// in it does not.
func (s *State) describes(now *State, directory bool) bool {
	if directory {
		return s.Inode == 0 || s.Inode == now.Inode
	}
	return s.Inode == now.Inode && s.Size == now.Size && s.Modified == now.Modified &&
		(s.Changed == 0 || s.Changed == now.Changed)
}
