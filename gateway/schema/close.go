package schema

// closeObjects makes every object that is described refuse what is not described (X59). doc.go says
// where and why.
func (in *inspection) closeObjects() {
	type closing struct {
		n       *node
		keyword string
	}
	var found []closing
	for _, n := range in.nodes {
		if !n.owner || n.asIs || opens(n.object) || !in.describes(n, map[*node]bool{}) {
			continue
		}
		if composed(n.object) {
			found = append(found, closing{n, "unevaluatedProperties"})
		} else {
			found = append(found, closing{n, "additionalProperties"})
		}
	}
	for _, c := range found { // after looking: what is closed here must not count as said by the author
		c.n.object[c.keyword] = false
	}
}

// opens reports whether a schema speaks of properties it does not name.
func opens(obj map[string]any) bool {
	for _, k := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties"} {
		if _, ok := obj[k]; ok {
			return true
		}
	}
	return false
}

// composed reports whether other schemas judge the same value.
func composed(obj map[string]any) bool {
	for name := range obj {
		if keywords[name].inPlace || name == "$ref" || name == "$dynamicRef" {
			return true
		}
	}
	return false
}

// describes reports whether a schema, or one that judges the same value with it, names properties.
func (in *inspection) describes(n *node, seen map[*node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	if _, ok := n.object["properties"]; ok {
		return true
	}
	for _, k := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := n.object[k].(string); ok {
			if to, err := in.resolve(ref); err == nil && in.describes(to, seen) {
				return true
			}
		}
	}
	for name, v := range n.object {
		k := keywords[name]
		if !k.inPlace || k.asIs {
			continue
		}
		here := n.pointer + "/" + escape(name)
		switch v := v.(type) {
		case []any:
			for i := range v {
				if in.describes(in.byPlace[here+"/"+itoa(i)], seen) {
					return true
				}
			}
		case map[string]any:
			if k.shape == one {
				if in.describes(in.byPlace[here], seen) {
					return true
				}
				continue
			}
			for key := range v {
				if in.describes(in.byPlace[here+"/"+escape(key)], seen) {
					return true
				}
			}
		}
	}
	return false
}
