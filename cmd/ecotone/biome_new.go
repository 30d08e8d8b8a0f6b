package main

import (
	"cmp"
	"fmt"

	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/cmd/ecotone/scaffold"
)

// BiomeNewCmd makes a biome.
type BiomeNewCmd struct {
	Name string `arg:"" help:"Name of the biome, which is its folder too."`
	Lang string `help:"go, c, rust or assemblyscript." enum:"go,c,rust,assemblyscript" required:""`
	Dir  string `help:"Folder to make; by default the name, here." type:"path" placeholder:"DIR"`
}

// Run makes the folder and says what comes next.
func (c *BiomeNewCmd) Run(e *Env) error {
	if err := scaffold.CheckName(c.Name); err != nil {
		return usagef("%s", err)
	}
	dir := cmp.Or(c.Dir, c.Name)
	if err := scaffold.New(dir, c.Name, build.Language(c.Lang)); err != nil {
		return err
	}
	if e.json {
		return e.encode(map[string]string{"name": c.Name, "language": c.Lang, "folder": dir})
	}
	_, err := fmt.Fprintf(e.stdout, `%[1]s is a new biome in %[2]s. Next:

  ecotone biome build %[1]s     compile it, with its manifest, into %[1]s/%[3]s.wasm
  ecotone biome test %[1]s      run its examples and tests, without a server
  ecotone biome push %[1]s/%[3]s.wasm
`, dir, c.Lang, c.Name)
	return err
}
