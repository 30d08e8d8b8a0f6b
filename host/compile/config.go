package compile

import (
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// memoryLimitPages is the hard maximum of a guest's memory, 256 MiB (design, table of limits). An
// environment's own, smaller bound is applied where instances are made.
const memoryLimitPages = 4096

// RuntimeConfig is the one engine configuration. The child compiles under it and whoever loads an
// artifact must load under it: the engine's cache key covers the context checks and the CPU
// features, but neither the feature set nor the debug information, so two configurations that
// differ in those would silently share native code.
func RuntimeConfig() wazero.RuntimeConfig {
	// The compiler where the platform has one, else the interpreter.
	c := wazero.NewRuntimeConfig()
	// What admission accepts, and no proposal beyond it.
	c = c.WithCoreFeatures(api.CoreFeaturesV2)
	// Modules are metered and look at their deadlines themselves. This changes the generated code.
	c = c.WithCloseOnContextDone(false)
	// A module that asks for more does not validate.
	c = c.WithMemoryLimitPages(memoryLimitPages)
	// No parsing of uploaded DWARF in the serving process.
	c = c.WithDebugInfoEnabled(false)
	// Nothing here reads custom sections.
	return c.WithCustomSections(false)
}

// configText names the configuration in the engine fingerprint. Change it with RuntimeConfig.
const configText = "features=core-v2 context-checks=off memory-pages=4096 debug-info=off custom-sections=off"

// engineVersion is the engine's module version as the binary was built with it.
func engineVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/tetratelabs/wazero" {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			return dep.Version + " " + dep.Sum
		}
	}
	return "unknown"
}

// platform names what native code is for, beside the CPU features.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
