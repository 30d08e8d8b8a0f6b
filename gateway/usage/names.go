package usage

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// maxSiblings is how many resources of one directory are named one by one.
const maxSiblings = 8

// names are resources that were used.
type names struct {
	exact map[string]bool // paths and keys
	wide  map[string]bool // globs of what was listed
	all   bool            // the receipt does not say which
}

func (n *names) any() bool { return n.all || len(n.exact) > 0 || len(n.wide) > 0 }

func (n *names) join(o *names) {
	n.all = n.all || o.all
	for name := range o.exact {
		n.name(name)
	}
	for g := range o.wide {
		n.widely(g)
	}
}

func (n *names) name(name string) {
	if n.exact == nil {
		n.exact = map[string]bool{}
	}
	n.exact[name] = true
}

func (n *names) widely(g string) {
	if _, err := glob.Compile(g); err != nil {
		n.all = true
		return
	}
	if n.wide == nil {
		n.wide = map[string]bool{}
	}
	n.wide[g] = true
}

// Pair is the resources that a receipt names for a call of two: the boundary writes an arrow between them, the files service
// two characters. What names one is that one.
func Pair(target string) []string {
	return strings.Split(strings.ReplaceAll(target, " → ", " -> "), " -> ")
}

// touch adds the target of one host call.
func (n *names) touch(function, target string) {
	switch function {
	case "kv_get", "kv_put", "kv_delete", "file_stat", "file_read", "file_create", "file_write", "file_replace", "file_edit", "file_remove", "file_mkdir":
		n.name(target)
	case "file_copy", "file_move":
		for _, name := range Pair(target) {
			n.name(name)
		}
	case "file_list":
		if dir, ok := grant.Exactly(target); ok && target != "." {
			n.widely(dir + "/*")
		} else {
			n.widely("*")
		}
	case "kv_list":
		if prefix, ok := grant.Exactly(target); ok {
			n.widely(prefix + "*")
			n.widely(prefix + "*/**")
		} else {
			n.all = true // everything, or a prefix that ends a component
		}
	case "file_glob", "file_grep":
		n.widely(target)
	}
}

// globs are the fewest words for what was used; nil is everything, or nothing at all.
func (n *names) globs() []string {
	if n.all {
		return nil
	}
	siblings := map[string][]string{}
	for name := range n.exact {
		siblings[path.Dir(name)] = append(siblings[path.Dir(name)], name)
	}
	out := maps.Clone(n.wide)
	if out == nil {
		out = map[string]bool{}
	}
	listed := slices.Collect(maps.Keys(out))
	covered := glob.NewSet(listed)
	for dir, all := range siblings {
		if len(all) > maxSiblings {
			if d, ok := grant.Exactly(dir); dir == "." {
				out["*"] = true
			} else if ok {
				out[d+"/*"] = true
			} else {
				return nil
			}
			continue
		}
		for _, name := range all {
			if len(listed) > 0 && covered.Match(name) { // an empty set is everything
				continue
			}
			g, ok := grant.Exactly(name)
			if !ok {
				return nil
			}
			out[g] = true
		}
	}
	if len(out) > grant.MaxGlobs || len(out) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(out))
}
