package audit

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Durability is the closed set of what an acknowledged event survives. The zero value is the safer
// one. It is a property of the process that writes: a log may be opened in either mode at any time.
type Durability uint8

const (
	// DurabilityPower survives power loss: the entries of a group are synchronised, once for the
	// whole group, before anybody is answered.
	DurabilityPower Durability = iota
	// DurabilityProcess survives the end of the process, kill -9 included: the entries are in the
	// kernel before anybody is answered, and synchronised in the background [CoverEvery] later
	// at most, plus the time that one synchronisation takes. What was acknowledged since may be
	// lost when the machine itself goes down, but for [Admin] events, which are synchronised as
	// the store is that holds what they are about.
	DurabilityProcess
	numDurabilities
)

// CoverEvery is how long an entry waits for the signed head that covers it, and in
// [DurabilityProcess] for the disk: this, and the time that one synchronisation takes.
const CoverEvery = 100 * time.Millisecond

// maxUncovered bounds the bytes of entries after the last head, of which a group is a part. Who
// would go past it waits for a head.
const maxUncovered = 2 * maxGroup

var durabilityNames = [numDurabilities]string{DurabilityPower: "power", DurabilityProcess: "process"}

func (d Durability) String() string {
	if d >= numDurabilities {
		return "invalid"
	}
	return durabilityNames[d]
}

// ParseDurability reads a mode by name.
func ParseDurability(name string) (Durability, error) {
	for d, n := range durabilityNames {
		if n == name {
			return Durability(d), nil
		}
	}
	return 0, abi.Errorf(abi.CodeInvalidRequest, "%s is not a durability of the audit log", abi.Quote(name)).WithHint("it is power or process")
}
