package grant

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/ecotone-dev/ecotone/abi"
)

// Config is what whoever installs a biome tells it, name by name. Guests whose interface has
// configuration (Extism plug-ins) read it; others never see it. It is no place for secrets: whoever may
// read the install grant reads it, and a guest may answer with it.
type Config map[string]string

// Bounds of one install grant's configuration.
const (
	MaxConfig      = 64
	MaxConfigName  = 128     // bytes
	MaxConfigValue = 4 << 10 // bytes
)

// Check refuses what is over the bounds, and names that could not be shown as they are.
func (c Config) Check() *abi.Error {
	if len(c) > MaxConfig {
		return abi.Errorf(abi.CodeInvalidRequest, "%d entries of configuration, at most %d are kept", len(c), MaxConfig).At("/config")
	}
	for _, name := range c.Names() {
		at := "/config/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name) // RFC 6901
		switch {
		case name == "":
			return abi.Errorf(abi.CodeInvalidRequest, "a name of configuration is empty").At("/config")
		case len(name) > MaxConfigName:
			return abi.Errorf(abi.CodeInvalidRequest, "a name of configuration has %d bytes, at most %d are kept", len(name), MaxConfigName).At("/config")
		case strings.ContainsFunc(name, hidden):
			return abi.Errorf(abi.CodeInvalidRequest, "the name of configuration %s has characters that do not show", abi.Quote(name)).At("/config")
		case len(c[name]) > MaxConfigValue:
			return abi.Errorf(abi.CodeInvalidRequest, "the value has %d bytes, at most %d are kept", len(c[name]), MaxConfigValue).At(at)
		}
	}
	return nil
}

// hidden is a character that changes how text is shown without being seen itself (S17).
func hidden(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }

// Names are the names, sorted.
func (c Config) Names() []string { return slices.Sorted(maps.Keys(c)) }
