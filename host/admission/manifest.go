package admission

import (
	"encoding/json"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// manifest finds the one manifest section, decodes it and has its schemas compiled.
func (i *inspection) manifest() {
	sections := i.m.Custom(abi.ManifestSection)
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
	if len(sections) == 1 {
		i.report.ManifestBytes = append([]byte(nil), content.Of(i.module)...)
		i.report.Digest = wasm.Digest(i.report.ManifestBytes, i.module)
	}
	manifest, problems := abi.DecodeManifest(content.Of(i.module))
	for _, p := range problems {
		i.add(Problem{
			Code: p.Code, Offset: int(content.Start), Section: wasm.SectionCustom.String(),
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
		i.schema(content.Start, fmt.Sprintf("/provides/%d/inputSchema", n), d.InputSchema)
		i.schema(content.Start, fmt.Sprintf("/provides/%d/outputSchema", n), d.OutputSchema)
	}
}

func (i *inspection) schema(offset uint32, pointer string, schema json.RawMessage) {
	err := i.Schema(schema)
	if err == nil {
		return
	}
	p := Problem{
		Code: abi.CodeSchemaInvalid, Offset: int(offset), Section: wasm.SectionCustom.String(),
		Pointer: pointer, Message: "the schema does not compile",
	}
	var own *abi.Error
	if abi.AsErrorInto(err, &own) {
		p.Message, p.Hint, p.Pointer = own.Message, own.Hint, pointer+own.Pointer
	}
	i.add(p)
}
