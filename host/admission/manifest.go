package admission

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// besideSection is what problems of a manifest that came beside the module name as their section.
const besideSection = "manifest"

// manifest finds the one manifest, decodes it and has its schemas compiled.
func (i *inspection) manifest() {
	sections := i.m.Custom(abi.ManifestSection)
	if len(sections) == 0 && i.beside != nil {
		i.declared(i.beside, 0, besideSection)
		return
	}
	if len(sections) == 0 {
		if !i.m.Unread(wasm.SectionCustom) {
			i.refuse(abi.CodeManifestMissing, wasm.SectionCustom, uint32(len(i.module)),
				i.manifestHint(), "there is no custom section %q", abi.ManifestSection)
		}
		return
	}
	for _, again := range sections[1:] {
		i.refuse(abi.CodeManifestInvalid, wasm.SectionCustom, again.Offset,
			"keep one", "the custom section %q is there more than once", abi.ManifestSection)
	}
	content := sections[0].Content
	if i.beside != nil && !bytes.Equal(i.beside, content.Of(i.module)) {
		i.refuse(abi.CodeManifestInvalid, wasm.SectionCustom, sections[0].Offset,
			"send the same bytes, or one of the two", "the module carries another manifest than the one beside it")
		return
	}
	if len(sections) > 1 {
		i.decode(content.Of(i.module), content.Start, wasm.SectionCustom.String())
		return
	}
	i.declared(content.Of(i.module), content.Start, wasm.SectionCustom.String())
}

// declared takes the one manifest of a biome, which begins at an offset of a section.
func (i *inspection) declared(manifest []byte, offset uint32, section string) {
	i.report.ManifestBytes = bytes.Clone(manifest)
	i.report.Digest = wasm.Digest(i.report.ManifestBytes, i.module)
	i.decode(manifest, offset, section)
}

func (i *inspection) decode(raw []byte, offset uint32, section string) {
	manifest, problems := abi.DecodeManifest(raw)
	for _, p := range problems {
		i.add(Problem{
			Code: p.Code, Offset: int(offset), Section: section,
			Pointer: p.Pointer, Message: "manifest: " + p.Message, Hint: p.Hint,
		})
	}
	if manifest == nil {
		return
	}
	i.report.Manifest, i.report.Declared = manifest, manifest.MaxReach()
	if i.Schema == nil {
		return
	}
	for n := range manifest.Provides {
		d := &manifest.Provides[n]
		i.schema(offset, section, fmt.Sprintf("/provides/%d/inputSchema", n), d.InputSchema)
		i.schema(offset, section, fmt.Sprintf("/provides/%d/outputSchema", n), d.OutputSchema)
	}
}

func (i *inspection) schema(offset uint32, section, pointer string, schema json.RawMessage) {
	err := i.Schema(schema)
	if err == nil {
		return
	}
	p := Problem{
		Code: abi.CodeSchemaInvalid, Offset: int(offset), Section: section,
		Pointer: pointer, Message: "the schema does not compile",
	}
	var own *abi.Error
	if abi.AsErrorInto(err, &own) {
		p.Message, p.Hint, p.Pointer = own.Message, own.Hint, pointer+own.Pointer
	}
	i.add(p)
}
