// Package egress compiles the rules for requests that leave the gateway: which scheme,
// host, port, method and path an endpoint admits. It decides and never dials.
package egress

import "github.com/ecotone-dev/ecotone/abi"

// Endpoint is one named rule of an organisation, compiled.
type Endpoint struct {
	Name      string
	Rule      Rule
	Clearance abi.Classification // what may be sent to it; wildcard hosts are public (S16)
	Label     abi.Classification // what comes back from it
	Loopback  bool               // may be dialled on loopback and private addresses, if the server allows that too (PF-A25)
}

// Rule is the textual form; see Compile.
type Rule struct {
	Scheme  string   `json:"scheme"`
	Host    string   `json:"host"`
	Port    int      `json:"port,omitempty"`
	Methods []string `json:"methods"`
	Path    string   `json:"path"`
}
