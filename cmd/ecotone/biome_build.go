package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// source is a biome on this machine.
type source struct {
	Source   string `arg:"" help:"Folder of a biome, or a .wasm module." type:"path"`
	Manifest string `help:"Manifest of a .wasm module; by default the one in it, or else manifest.json beside it." type:"path" placeholder:"FILE"`
	Lang     string `help:"Language of a folder that could be in several: go, c, rust or assemblyscript." placeholder:"LANG"`
}

// isFolder reports whether the source is a folder.
func (s *source) isFolder() (bool, error) {
	info, err := os.Stat(s.Source)
	if err != nil {
		return false, err
	}
	if info.IsDir() && s.Manifest != "" {
		return false, usagef("--manifest is for a module; a folder has its manifest.json")
	}
	if !info.IsDir() && s.Lang != "" {
		return false, usagef("--lang is for a folder; a module is in WebAssembly")
	}
	return info.IsDir(), nil
}

// beside is the folder that the source's other files lie in.
func (s *source) beside() string {
	if folder, err := s.isFolder(); err == nil && folder {
		return s.Source
	}
	return filepath.Dir(s.Source)
}

// biome builds the folder, or reads the module and leaves it as it is.
func (s *source) biome(e *Env) (wasm.Original, error) {
	folder, err := s.isFolder()
	if err != nil {
		return wasm.Original{}, err
	}
	if folder {
		module, err := (&build.Builder{}).Folder(e.ctx, s.Source, build.Language(s.Lang))
		return wasm.Original{Module: module}, err
	}
	module, err := os.ReadFile(s.Source)
	if err != nil {
		return wasm.Original{}, err
	}
	path := s.Manifest
	if path == "" {
		if inside, err := wasm.Custom(module, abi.ManifestSection); err != nil || len(inside) > 0 {
			return wasm.Original{Module: module}, nil // admission says what is wrong with it
		}
		path = filepath.Join(s.beside(), build.ManifestFile)
	}
	manifest, err := os.ReadFile(path)
	if s.Manifest == "" && errors.Is(err, fs.ErrNotExist) {
		return wasm.Original{Module: module}, nil
	}
	return wasm.Original{Module: module, Manifest: manifest}, err
}

func checkSchema(raw json.RawMessage) error { return schema.Check(raw) }

// inspector judges as a server with the default limits does.
func inspector() admission.Inspector {
	return admission.Inspector{Limits: admission.UploadLimits(abi.DefaultLimits()), Schema: checkSchema}
}

// BiomeBuildCmd makes an uploadable module.
type BiomeBuildCmd struct {
	source
	Out string `short:"o" help:"Where to write the module; of a folder by default NAME.wasm in it." type:"path" placeholder:"FILE"`
}

// Run builds, inspects and writes. A module that admission would refuse is written all the
// same, and the exit code is 1.
func (c *BiomeBuildCmd) Run(e *Env) error {
	biome, err := c.biome(e)
	if err != nil {
		return err
	}
	if biome.Manifest != nil {
		if _, problems := abi.DecodeManifest(biome.Manifest); problems != nil {
			return problems
		}
		if biome.Module, err = wasm.SetCustom(biome.Module, abi.ManifestSection, biome.Manifest); err != nil {
			return err
		}
	}
	report := inspector().Inspect(wasm.Original{Module: biome.Module})
	if err := c.write(biome.Module, report); err != nil {
		return err
	}
	return e.judged(report)
}

func (c *BiomeBuildCmd) write(module []byte, report *admission.Report) error {
	if c.Out == "" {
		folder, err := c.isFolder()
		if err != nil || !folder || report.Manifest == nil {
			return errors.Join(err, usagef("-o says where the module is written"))
		}
		c.Out = filepath.Join(c.Source, report.Manifest.Name+".wasm")
	}
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.Out, module, 0o644)
}

// judged prints a report; the exit code is 1 for a module that is refused.
func (e *Env) judged(r *admission.Report) error {
	var err error
	if e.json {
		err = e.encode(r)
	} else {
		err = r.WriteText(e.stdout)
	}
	if err == nil && !r.Accepted {
		err = errQuiet(exitFailed)
	}
	return err
}
