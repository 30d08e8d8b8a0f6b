package main

import (
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/server"
)

// mode is one of the audit's: what an answered invocation's outcome survives.
type mode struct {
	name       string // as the server's option spells it
	durability audit.Durability
	note       string
}

// usual is what a gateway does that is told nothing.
func (m mode) usual() bool { return m.durability == server.Options{}.Durability }

func (m mode) String() string {
	if m.usual() {
		return "audit " + m.name + " (default)"
	}
	return "audit " + m.name
}

// modes are all of them, the dearest first.
var modes = []mode{
	{"power", audit.DurabilityPower, "In the mode power what was audited survives the loss of power: it is synchronised to the disk before the answer."},
	{"process", audit.DurabilityProcess, "In the mode process what was audited survives the end of the process, kill -9 included, and is with the operating system before the answer."},
}

// setMode tells a server which; "" leaves it the default.
func setMode(o *server.Options, name string) (err error) {
	if name != "" {
		o.Durability, err = audit.ParseDurability(name)
	}
	return err
}

// openLog opens an audit log of its own in that mode.
func openLog(dir string, m mode) (*audit.Log, error) {
	return audit.Open(audit.Options{Dir: dir, Durability: m.durability})
}
