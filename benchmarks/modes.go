package main

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/server"
)

// mode is one of the audit's: what an answered invocation's outcome survives.
type mode struct {
	name    string // as the server's option spells it
	note    string
	isUsual bool // it is what a gateway does that is told nothing
}

func (m mode) String() string {
	if m.isUsual {
		return "audit " + m.name + " (default)"
	}
	return "audit " + m.name
}

// modes are those this build has.
var modes = []mode{
	{name: "power", note: "An answered invocation survives the loss of power: its outcome is synchronised to the disk before the answer.", isUsual: true},
}

// setMode tells a server which.
func setMode(_ *server.Options, name string) error {
	if name == "" || name == "power" {
		return nil
	}
	return fmt.Errorf("this build has no audit mode %q", name)
}

// openLog opens an audit log of its own in that mode.
func openLog(dir string, _ mode) (*audit.Log, error) { return audit.Open(audit.Options{Dir: dir}) }
