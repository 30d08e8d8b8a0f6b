package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// tool is a capability as a tool, or false when it cannot be one: its name would be too long, or its input
// is no object.
func tool(c *invoke.Capability, version string) (*sdk.Tool, bool) {
	name, ok := toolName(c.Ref)
	if !ok {
		return nil, false
	}
	input, ok := objectSchema(c.InputSchema)
	if !ok {
		return nil, false
	}
	t := &sdk.Tool{
		Name: name, Title: marked(c, c.Title), Description: description(c), InputSchema: input, Annotations: annotations(c),
		Meta: sdk.Meta{metaCapability: provenance(c)},
	}
	if output, ok := objectSchema(c.OutputSchema); ok && declaresObject(c.OutputSchema) {
		t.OutputSchema = output
	} else if version == versionStateless { // the older one has no other outputs than objects
		t.OutputSchema = shown(c.OutputSchema)
	}
	return t, true
}

// description is what a tool says of its capability: the summary, and what its author says it does and risks.
func description(c *invoke.Capability) string {
	text := marked(c, c.Summary) + " Side effects, as its author says: " + plain(c.SideEffects) + ". Risk, as its author says: " + string(c.RiskTier) + "."
	if c.RequiresApproval {
		text += " Every call needs a person's approval."
	}
	if c.State != "" {
		text += " This capability is " + string(c.State)
		if c.ReplacedBy != "" {
			text += "; " + string(c.ReplacedBy) + " replaces it"
		}
		text += "."
	}
	return text
}

// annotations are hints, all of them explicit: what is left out has a default of the protocol's. They rest on
// what the author says, but for the open world, which is the reach that the gateway enforces.
func annotations(c *invoke.Capability) *sdk.ToolAnnotations {
	risky := c.RiskTier == abi.RiskHigh || c.RiskTier == abi.RiskCritical
	readOnly := strings.EqualFold(strings.TrimSpace(c.SideEffects), "none") && !risky
	destructive := !readOnly && c.RiskTier != abi.RiskLow
	open := c.Reach >= abi.ReachIntegration
	return &sdk.ToolAnnotations{Title: marked(c, c.Title), ReadOnlyHint: readOnly, DestructiveHint: &destructive, OpenWorldHint: &open}
}

// origin is what a program is told of a capability beside its text, by the gateway.
type origin struct {
	Ref              abi.CapabilityRef  `json:"ref"`
	Biome            string             `json:"biome"`
	Digest           string             `json:"digest"`
	RiskTier         abi.RiskTier       `json:"riskTier"`
	RequiresApproval bool               `json:"requiresApproval"`
	Reach            abi.Reach          `json:"reach"`
	Output           abi.Classification `json:"outputClassification"`
	Lifecycle        string             `json:"lifecycle,omitempty"`
	ReplacedBy       abi.CapabilityRef  `json:"replacedBy,omitempty"`
}

func provenance(c *invoke.Capability) origin {
	return origin{
		Ref: c.Ref, Biome: c.Biome, Digest: c.Digest, RiskTier: c.RiskTier, RequiresApproval: c.RequiresApproval, Reach: c.Reach,
		Output: c.OutputClassification, Lifecycle: string(c.State), ReplacedBy: c.ReplacedBy,
	}
}

// mirror is the keyword by which a schema asks a client to repeat an argument in a header. An author does not
// decide what a client puts in headers.
const mirror = "x-mcp-header"

// shown is a schema as a client is shown it: the author's, without what would steer the client.
func shown(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(mirror)) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return json.RawMessage(`{}`)
	}
	out, err := json.Marshal(unmirrored(v, false))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

// named are the keywords whose members are schemas under names that the author chose.
var named = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}

// unmirrored drops the keyword wherever it is one; names says that the members of v are names.
func unmirrored(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		if !names {
			delete(v, mirror)
		}
		for k, e := range v {
			v[k] = unmirrored(e, !names && named[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = unmirrored(v[i], false)
		}
	}
	return v
}

// objectSchema is a schema as one that only objects satisfy, as arguments are one; false when no object
// satisfies it.
func objectSchema(raw json.RawMessage) (json.RawMessage, bool) {
	raw = shown(raw)
	if string(bytes.TrimSpace(raw)) == "true" {
		return json.RawMessage(`{"type":"object"}`), true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, false
	}
	var one string
	var many []string
	switch {
	case members["type"] == nil:
	case json.Unmarshal(members["type"], &one) == nil:
		return raw, one == "object"
	case json.Unmarshal(members["type"], &many) != nil || !slices.Contains(many, "object"):
		return nil, false
	}
	members["type"] = json.RawMessage(`"object"`)
	out, err := json.Marshal(members)
	return out, err == nil
}

// declaresObject reports whether a schema says itself that only objects satisfy it.
func declaresObject(raw json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &s) == nil && s.Type == "object"
}
