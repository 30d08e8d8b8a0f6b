package abi

import "strings"

// face finds the row of the manifest's face; for what this host does not have, the native one.
func (c *manifestCheck) face(m *Manifest) *FaceInfo {
	native, _ := FaceNative.Info()
	if m.ABI == "" {
		c.add("/abi", "is missing")
		return native
	}
	row, ok := m.ABI.Info()
	if !ok {
		var names []string
		for _, f := range Faces() {
			names = append(names, string(f.Face))
		}
		c.add("/abi", "this host speaks %s; the manifest asks for %s", strings.Join(names, ", "), Quote(string(m.ABI)))
		return native
	}
	return row
}

// foreign checks what only some faces' capabilities may say.
func (c *manifestCheck) foreign(at string, face *FaceInfo, d *Descriptor) {
	command := face.Commands && d.Export == ExportStart
	if d.Export == ExportStart && !face.Commands && !face.Starts {
		c.add(at+"/export", "%q is not a capability of %s", d.Export, face.Title)
	}
	switch {
	case len(d.Arguments) > 0 && !command:
		c.add(at+"/arguments", "only a program that begins with %q has arguments, and this is another export", ExportStart)
	case len(d.Arguments) > MaxArguments:
		c.add(at+"/arguments", "a program has at most %d arguments", MaxArguments)
	}
	for i, a := range d.Arguments {
		if len(a) > MaxArgumentBytes || hasControl(a) {
			c.add(at+"/arguments", "argument %d has more than %d bytes, or control or bidirectional formatting characters", i+1, MaxArgumentBytes)
			break
		}
	}
	c.encoding(at+"/inputEncoding", face, d.InputEncoding)
	c.encoding(at+"/outputEncoding", face, d.OutputEncoding)
}

func (c *manifestCheck) encoding(at string, face *FaceInfo, e Encoding) {
	switch {
	case !e.Valid():
		c.add(at, "%s is not one of json, text, base64", Quote(string(e)))
	case e != "" && !face.Foreign:
		c.add(at, "%s reads and writes JSON", face.Title)
	}
}
