package badger

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// SchemaVersion is the only layout of a data directory that this program opens. There is no
// migration: another version is refused and left untouched (M49).
const SchemaVersion = 2

const (
	schemaFile    = "SCHEMA"
	schemaNew     = "SCHEMA.new-" // prefix of one being written; a crash may leave it in an otherwise empty directory
	maxSchemaFile = 1 << 10
)

// Schema is the content of DIR/SCHEMA.
type Schema struct {
	Schema int  `json:"schema"`
	Dev    bool `json:"dev"` // the directory was made under --dev; it never changes (S19)
}

// prepare returns the schema of dir, and makes dir and its schema when there is nothing yet.
func prepare(dir string, dev bool) (Schema, error) {
	s, err := readSchema(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Schema{}, abi.Errorf(abi.CodeInternal, "the data directory cannot be made: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Schema{}, abi.Errorf(abi.CodeInternal, "the data directory cannot be read: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), schemaNew) {
			return Schema{}, unsupported("the directory has content and no schema")
		}
	}
	return writeSchema(dir, Schema{Schema: SchemaVersion, Dev: dev})
}

// readSchema answers fs.ErrNotExist when there is no schema, and STORE_SCHEMA_UNSUPPORTED for
// everything that is not exactly a schema of this version.
func readSchema(dir string) (Schema, error) {
	path := filepath.Join(dir, schemaFile)
	info, err := os.Lstat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Schema{}, fs.ErrNotExist
		}
		return Schema{}, unsupported("the schema cannot be read").WithCause(err)
	}
	if !info.Mode().IsRegular() {
		return Schema{}, unsupported("the schema is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Schema{}, unsupported("the schema cannot be read").WithCause(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSchemaFile+1))
	if err != nil || len(data) > maxSchemaFile {
		return Schema{}, unsupported("the schema cannot be read").WithCause(err)
	}
	var s Schema
	if err := abi.DecodeStrict(data, &s); err != nil {
		return Schema{}, unsupported("the schema is not a schema document").WithCause(err)
	}
	if s.Schema != SchemaVersion {
		return Schema{}, unsupported("the schema version is another one")
	}
	return s, nil
}

func unsupported(message string) *abi.Error {
	return abi.Errorf(abi.CodeSchemaUnsupported, "the data directory is left untouched: %s", message).
		WithHint("this program opens schema version 2 and migrates nothing; use the program that wrote the directory, or another directory")
}

// writeSchema makes the schema durable under its name at once. When another process was
// faster, its schema stands.
func writeSchema(dir string, s Schema) (Schema, error) {
	fail := func(err error) (Schema, error) {
		return Schema{}, abi.Errorf(abi.CodeInternal, "the schema cannot be written: %w", err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fail(err)
	}
	tmp, err := os.CreateTemp(dir, schemaNew)
	if err != nil {
		return fail(err)
	}
	_, err = tmp.Write(append(data, '\n'))
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fail(err)
	}
	err = os.Link(tmp.Name(), filepath.Join(dir, schemaFile))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	if err := errors.Join(os.Remove(tmp.Name()), syncDir(dir)); err != nil {
		return fail(err)
	}
	return readSchema(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
