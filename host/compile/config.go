package compile

import (
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
	return wazero.NewRuntimeConfig(). // the compiler where the platform has one, else the interpreter
						WithCoreFeatures(api.CoreFeaturesV2).   // what admission accepts, no proposal beyond it
						WithCloseOnContextDone(true).           // deadlines are looked at in loop heads; changes generated code
						WithMemoryLimitPages(memoryLimitPages). // a module that wants more does not validate
						WithDebugInfoEnabled(false).            // no DWARF parsing of uploaded bytes in the serving process
						WithCustomSections(false)               // nothing here reads them
}

// configText names the configuration in the engine fingerprint. Change it with RuntimeConfig.
const configText = "features=core-v2 context-checks=on memory-pages=4096 debug-info=off custom-sections=off"
