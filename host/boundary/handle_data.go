package boundary

import (
	"context"
	"math"

	"github.com/ecotone-dev/ecotone/abi"
)

// Keys and files. Grammar, globs, labels, versions and store limits are the services'.

// maxListed is the most entries one call lists; asking for more, or for 0, means this.
const maxListed = 1000

func listed(limit uint32) int {
	if limit == 0 || limit > maxListed {
		return maxListed
	}
	return int(limit)
}

// kv adapts a key function to a handler.
func kv(f func(context.Context, KV, Scope, *call) (Result, error)) func(context.Context, *call) (Result, error) {
	return func(ctx context.Context, c *call) (Result, error) {
		if c.inv.services.KV == nil {
			return unavailable(c)
		}
		return f(ctx, c.inv.services.KV, c.inv.scope(), c)
	}
}

var (
	kvGet = kv(func(ctx context.Context, s KV, sc Scope, c *call) (Result, error) {
		return s.Get(ctx, sc, c.text(0))
	})
	kvPut = kv(func(ctx context.Context, s KV, sc Scope, c *call) (Result, error) {
		return s.Put(ctx, sc, c.text(0), c.bytes(1))
	})
	kvDelete = kv(func(ctx context.Context, s KV, sc Scope, c *call) (Result, error) {
		return s.Delete(ctx, sc, c.text(0))
	})
	kvList = kv(func(ctx context.Context, s KV, sc Scope, c *call) (Result, error) {
		return s.List(ctx, sc, c.text(0), c.text(1), listed(c.word(0)))
	})
)

// files adapts a file function to a handler.
func files(f func(context.Context, Files, Scope, *call) (Result, error)) func(context.Context, *call) (Result, error) {
	return func(ctx context.Context, c *call) (Result, error) {
		if c.inv.services.Files == nil {
			return unavailable(c)
		}
		return f(ctx, c.inv.services.Files, c.inv.scope(), c)
	}
}

var (
	fileStat = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Stat(ctx, sc, c.text(0))
	})
	fileRead = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		n := min(int64(c.word(1)), c.inv.limits.Get(abi.LimitFileBytes))
		return s.Read(ctx, sc, c.text(0), int64(c.words[0]), int(n))
	})
	fileList = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.List(ctx, sc, c.text(0), c.text(1), listed(c.word(0)))
	})
	fileCreate = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Create(ctx, sc, c.text(0), c.bytes(1))
	})
	fileWrite = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Write(ctx, sc, c.text(0), c.bytes(1))
	})
	fileReplace = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Replace(ctx, sc, c.text(0), c.text(1), c.bytes(2))
	})
	fileEdit = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Edit(ctx, sc, c.text(0), c.bytes(1), c.bytes(2), c.word(0) == 1)
	})
	fileCopy = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Copy(ctx, sc, c.text(0), c.text(1))
	})
	fileMove = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Move(ctx, sc, c.text(0), c.text(1))
	})
	fileRemove = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Remove(ctx, sc, c.text(0))
	})
	fileMkdir = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Mkdir(ctx, sc, c.text(0))
	})
	fileGrep = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Grep(ctx, sc, c.text(0), c.text(1), listed(c.word(0)))
	})
	fileGlob = files(func(ctx context.Context, s Files, sc Scope, c *call) (Result, error) {
		return s.Glob(ctx, sc, c.text(0), listed(c.word(0)))
	})
)

func fileReadForm(c *call) *abi.Error {
	target(c)
	if c.words[0] > math.MaxInt64 {
		return abi.Errorf(abi.CodeArgumentInvalid, "the offset is negative")
	}
	return nil
}

func fileEditForm(c *call) *abi.Error {
	target(c)
	if c.word(0) > 1 {
		return abi.Errorf(abi.CodeArgumentInvalid, "all is 0 or 1")
	}
	return nil
}
