package contract

import (
	"fmt"
	"reflect"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Vocabulary describes the words that every document uses, and the types that write themselves.
func Vocabulary() Known {
	codes := make([]abi.Code, 0, len(abi.Codes()))
	for _, c := range abi.Codes() {
		codes = append(codes, c.Code)
	}
	numbers := Object{"type": "object", "additionalProperties": Object{"type": "integer"}}
	return Known{
		reflect.TypeFor[abi.Reach]():          Named{"Reach", spelled(abi.Reaches())},
		reflect.TypeFor[abi.Classification](): Named{"Classification", spelled(abi.Classifications())},
		reflect.TypeFor[abi.Code]():           Named{"Code", Words(codes...)},
		reflect.TypeFor[abi.Kind]():           Named{"ProblemKind", Words(abi.Kinds()...)},
		reflect.TypeFor[abi.RiskTier]():       Words(abi.RiskLow, abi.RiskMedium, abi.RiskHigh, abi.RiskCritical),
		reflect.TypeFor[abi.Freeze]():         Words(abi.FreezeAuto, abi.FreezeSeeded, abi.FreezeNever),
		reflect.TypeFor[abi.CapabilityRef]():  Text("<domain>:<resource>.<verb>@<major>"),
		reflect.TypeFor[abi.EnvironmentRef](): Text("environment:<slug>"),
		reflect.TypeFor[abi.Subject]():        Text("user:, agent:, app: or biome: and an id"),
		reflect.TypeFor[abi.Limits]():         numbers,

		reflect.TypeFor[environment.Family]():      spelled([]environment.Family{environment.Boundary, environment.Refinement}),
		reflect.TypeFor[environment.Environment](): reflect.TypeFor[environment.Shown](),
		reflect.TypeFor[gate.Verdict]():            spelled([]gate.Verdict{gate.Deny, gate.Allow, gate.NeedsApproval}),
		reflect.TypeFor[gate.State]():              spelled(gate.States()),
		reflect.TypeFor[space.URI]():               Text("as ecotone://orgs/default/projects/team"),

		reflect.TypeFor[boundary.Counts]():   numbers,
		reflect.TypeFor[boundary.LogLevel](): spelled([]boundary.LogLevel{boundary.LogDebug, boundary.LogInfo, boundary.LogWarn, boundary.LogError}),
		reflect.TypeFor[egress.Endpoint]():   reflect.TypeFor[egress.Document](),
		reflect.TypeFor[vault.Value]():       Object{"type": "string", "writeOnly": true},
	}
}

// spelled is the closed vocabulary of words that write themselves.
func spelled[T fmt.Stringer](words []T) Object {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.String()
	}
	return Words(out...)
}
