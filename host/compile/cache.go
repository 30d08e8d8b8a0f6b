package compile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// cache keeps sealed artifacts as files, one per digest. It is safe for concurrent use.
type cache struct {
	root    *os.Root // nothing is ever opened outside, links included
	key     []byte
	maxFile int64

	mu sync.Mutex // held while a name changes: put's rename, and remove
}

// errMissing says that there is no file.
var errMissing = errors.New("no such artifact")

const unfinished = ".new-"

func openCache(dir string, key []byte, maxFile int64) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := sweep(dir, func(name string) bool { return strings.Contains(name, unfinished) }); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &cache{root: root, key: key, maxFile: maxFile}, nil
}

// sweep removes what a process that was killed left behind.
func sweep(dir string, mine func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if mine(e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// get returns a verified artifact, errMissing, or why there is none. A file that is not what it
// should be is gone afterwards; one that could not be read, for want of descriptors say, is not.
func (c *cache) get(digest Digest, fingerprint string) (*Artifact, error) {
	name := digest.String()
	data, st, err := c.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	var a *Artifact
	if err == nil {
		a, err = unseal(c.key, digest, fingerprint, data)
	}
	if errors.Is(err, errForeign) || errors.Is(err, errStale) {
		err = errors.Join(err, c.removeIf(name, st))
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// read reads a whole plain file. What is not one is not opened: opening a pipe would wait.
func (c *cache) read(name string) ([]byte, fs.FileInfo, error) {
	st, err := c.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > c.maxFile {
		return nil, st, errForeign
	}
	f, err := c.root.Open(name)
	if err != nil {
		return nil, st, err
	}
	defer f.Close()
	data := make([]byte, st.Size())
	switch _, err := io.ReadFull(f, data); err {
	case nil:
		return data, st, nil
	case io.EOF, io.ErrUnexpectedEOF:
		return nil, st, errForeign // cut short meanwhile
	default:
		return nil, st, err
	}
}

// put keeps an artifact: after it returns nil, a crash leaves the whole new file, and before that
// the old one or none.
func (c *cache) put(a *Artifact) error {
	name := a.digest.String()
	temporary := name + unfinished + rand.Text()
	if err := c.write(temporary, seal(c.key, a)); err != nil {
		return errors.Join(err, c.root.Remove(temporary))
	}
	c.mu.Lock()
	err := c.root.Rename(temporary, name)
	c.mu.Unlock()
	if err != nil {
		return errors.Join(err, c.root.Remove(temporary))
	}
	return c.syncDirectory()
}

func (c *cache) write(name string, data []byte) error {
	f, err := c.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDirectory makes a rename durable. Windows neither offers nor needs it.
func (c *cache) syncDirectory() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := c.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeIf removes a refused file, unless a rebuild has put a good one into its place since it was
// read.
func (c *cache) removeIf(name string, read fs.FileInfo) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && read != nil && !os.SameFile(read, now)) {
		return nil
	}
	return c.root.RemoveAll(name)
}

// remove forgets an artifact; it is not an error when there is none.
func (c *cache) remove(digest Digest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root.RemoveAll(digest.String())
}

func (c *cache) close() error { return c.root.Close() }
