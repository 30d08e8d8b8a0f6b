package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// permissions is what the server says a version of a biome may do.
type permissions struct {
	Biome, Digest, Permissions string
	Document                   struct {
		Domains map[string][]struct {
			Ref, Reach, RiskTier, SideEffects, OutputClassification string
			RequiresApproval                                        bool
		}
		Data                      map[string][]string
		Calls, Endpoints, Secrets []string
	}
	Config []string
	Diff   struct {
		Digest, Permissions string
		Added, Removed      []struct{ Kind, Name string }
		Changed             []struct{ Kind, Name, Field, From, To string }
	}
}

// BiomeDiffCmd shows what an install would admit.
type BiomeDiffCmd struct {
	Name   string `arg:"" help:"Name of the biome."`
	Digest string `help:"Version to look at; by default the newest upload." placeholder:"HEX"`
}

// Run prints the permission document of a version, and what changes with it.
func (c *BiomeDiffCmd) Run(e *Env) error {
	_, raw, err := e.permissions(c.Name, c.Digest)
	if err != nil {
		return err
	}
	return e.show(raw, permissionsText)
}

// permissions fetches the permission document of one version.
func (e *Env) permissions(name, digest string) (p permissions, raw []byte, err error) {
	path := "/v1/biomes/" + url.PathEscape(name) + "/permissions" + e.orgQuery()
	if digest != "" {
		path += "&digest=" + url.QueryEscape(digest)
	}
	res, err := e.conn.admin(e.ctx, http.MethodGet, path, nil)
	if err != nil {
		return p, nil, err
	}
	p, err = decodePermissions(res.body)
	return p, res.body, err
}

func decodePermissions(raw []byte) (p permissions, err error) {
	if err = json.Unmarshal(raw, &p); err != nil {
		err = fmt.Errorf("the answer does not decode: %w", err)
	}
	return p, err
}

// permissionsText is for people. What the author says of the biome is quoted: it is one line.
func permissionsText(w io.Writer, raw []byte) error {
	p, err := decodePermissions(raw)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\npermissions %s\n", p.Biome, p.Digest, p.Permissions)
	for _, domain := range slices.Sorted(maps.Keys(p.Document.Domains)) {
		for _, c := range p.Document.Domains[domain] {
			approval := ""
			if c.RequiresApproval {
				approval = ", wants approval"
			}
			fmt.Fprintf(&b, "  provides %s: reach %s, output %s; it says: risk %s, side effects %q%s\n", c.Ref, c.Reach, c.OutputClassification, c.RiskTier, c.SideEffects, approval)
		}
	}
	for _, service := range slices.Sorted(maps.Keys(p.Document.Data)) {
		fmt.Fprintf(&b, "  may use %s: %s\n", service, strings.Join(p.Document.Data[service], ", "))
	}
	for _, asks := range []struct {
		what  string
		names []string
	}{{"calls", p.Document.Calls}, {"endpoints", p.Document.Endpoints}, {"secrets", p.Document.Secrets}} {
		if len(asks.names) > 0 {
			fmt.Fprintf(&b, "  asks for %s: %s\n", asks.what, strings.Join(asks.names, ", "))
		}
	}
	d := &p.Diff
	switch {
	case d.Digest == "":
		fmt.Fprintln(&b, "nothing is installed: all of it is new")
	case d.Permissions == p.Permissions:
		fmt.Fprintf(&b, "the same as what is installed, %s\n", d.Digest)
	default:
		fmt.Fprintf(&b, "against what is installed, %s:\n", d.Digest)
		for _, l := range d.Added {
			fmt.Fprintf(&b, "  + %s %s\n", l.Kind, l.Name)
		}
		for _, l := range d.Removed {
			fmt.Fprintf(&b, "  - %s %s\n", l.Kind, l.Name)
		}
		for _, c := range d.Changed {
			fmt.Fprintf(&b, "  ~ %s %s: %s from %q to %q\n", c.Kind, c.Name, c.Field, c.From, c.To)
		}
	}
	if len(p.Config) > 0 {
		fmt.Fprintf(&b, "  installed with configuration: %s\n", strings.Join(p.Config, ", "))
	}
	_, err = io.WriteString(w, b.String())
	return err
}
