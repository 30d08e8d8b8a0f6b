package mcp

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// maxName bounds a tool's name, by the protocol.
const maxName = 128

// toolName is the name of a capability as a tool. A ref is of lower-case letters, digits and hyphens, and a
// tool's name may in practice hold letters, digits, hyphens and underscores: the dot becomes one underscore,
// the colon and the at sign, of which a ref has one each, become two. No two refs have one name, and the
// name says which ref it is, so nothing is looked up and nothing can be shadowed:
//
//	kb:page.read@1  kb__page_read__1
//
// It is false for a ref too long to have a name.
func toolName(ref abi.CapabilityRef) (string, bool) {
	name := strings.NewReplacer(":", "__", "@", "__", ".", "_").Replace(string(ref))
	return name, len(name) <= maxName
}

// refOf is the ref that a tool's name says.
func refOf(name string) (abi.CapabilityRef, bool) {
	parts := strings.Split(name, "__")
	if len(name) > maxName || len(parts) != 3 {
		return "", false
	}
	ref, err := abi.ParseCapabilityRef(parts[0] + ":" + strings.ReplaceAll(parts[1], "_", ".") + "@" + parts[2])
	if err != nil {
		return "", false
	}
	again, _ := toolName(ref)
	return ref, again == name
}
