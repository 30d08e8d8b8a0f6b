// Package usage finds the smallest set of rights with which what a biome did could be done again.
//
// It promises to suggest what the rows of the audit show to have been used, and nothing else: what was refused is not used,
// and a resource is named as it was, or by its directory when many beside each other were. It refuses to know where
// rows are kept and whether anybody should have what they show.
package usage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Install is what an install grant of a biome would have to admit. Its members are those of the request.
type Install struct {
	Biome        string               `json:"biome"`
	Digest       string               `json:"digest"`
	Environments []abi.EnvironmentRef `json:"environments"`
	Calls        []abi.CapabilityRef  `json:"calls,omitempty"`
	Endpoints    []string             `json:"endpoints,omitempty"`
	Secrets      []string             `json:"secrets,omitempty"`
}

// Grant is one that a subject would need. Globs are absent where no resource was used, or where the receipt does not
// say which. The members are those of the request.
type Grant struct {
	Subject     abi.Subject        `json:"subject"`
	Capability  abi.CapabilityRef  `json:"capability"`
	Environment abi.EnvironmentRef `json:"environment"`
	Globs       []string           `json:"globs,omitempty"`
}

// Suggested is a whole set. Making the installs, and then the grants, lets the same calls through.
type Suggested struct {
	Biome       string             `json:"biome"`
	Digest      string             `json:"digest"`
	Environment abi.EnvironmentRef `json:"environment"`
	Invocations int                `json:"invocations"` // that it was found from, children included
	Installs    []Install          `json:"installs"`
	Grants      []Grant            `json:"grants"`
	// Incomplete says that there was more than was looked at, or than a receipt holds.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Known is what the rows do not say.
type Known interface {
	// Endpoints are those of the organisation that a version of a biome declares; nil when it is not the
	// organisation's.
	Endpoints(biome, digest string) []*egress.Endpoint
	// Own reports whether the biome is the organisation's, and so to be installed there.
	Own(biome string) bool
}

// Find folds rows, in any order, into what the invocations of one version of a biome would need in an environment, with what
// they called. rows hold allowed invocations of one environment.
func Find(rows []audit.Row, biome, digest string, environment abi.EnvironmentRef, known Known) Suggested {
	f := finder{
		children: map[string][]*audit.Row{}, installs: map[string]*Install{}, grants: map[holder]*names{},
		environment: environment, known: known,
	}
	out := Suggested{Biome: biome, Digest: digest, Environment: environment, Installs: []Install{}, Grants: []Grant{}}
	for i := range rows {
		if d := rows[i].Decision; d != nil && d.Parent != "" {
			f.children[d.Parent] = append(f.children[d.Parent], &rows[i])
		}
	}
	seen := map[string]bool{} // a child of its own biome is found twice
	for i := range rows {
		if d := rows[i].Decision; d != nil && d.Biome == biome && d.Digest == digest && !seen[rows[i].ID] {
			f.use(&rows[i], seen)
		}
	}
	out.Invocations, out.Incomplete = len(seen), f.incomplete
	for _, name := range slices.Sorted(maps.Keys(f.installs)) {
		in := f.installs[name]
		slices.Sort(in.Calls)
		slices.Sort(in.Endpoints)
		slices.Sort(in.Secrets)
		out.Installs = append(out.Installs, *in)
	}
	// What a biome may call has to be there before it.
	slices.SortStableFunc(out.Installs, func(a, b Install) int { return cmp.Compare(len(a.Calls), len(b.Calls)) })
	for h, n := range f.grants {
		out.Grants = append(out.Grants, Grant{Subject: h.subject, Capability: h.capability, Environment: environment, Globs: n.globs()})
	}
	slices.SortFunc(out.Grants, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Capability, b.Capability))
	})
	return out
}

type holder struct {
	subject    abi.Subject
	capability abi.CapabilityRef
}

type finder struct {
	children    map[string][]*audit.Row
	installs    map[string]*Install
	grants      map[holder]*names
	environment abi.EnvironmentRef
	known       Known
	incomplete  bool
}

// use adds what one invocation used, and what it called used. It returns the resources of both: a child has no more of them than
// its parent.
func (f *finder) use(r *audit.Row, seen map[string]bool) *names {
	seen[r.ID] = true
	d := r.Decision
	used := &names{}
	if r.Ended != nil {
		f.incomplete = f.incomplete || r.Ended.LinesOmitted > 0
		in := f.install(d.Biome, d.Digest)
		for i := range r.Ended.Lines {
			f.line(&r.Ended.Lines[i], d, in, used)
		}
	}
	for _, c := range f.children[r.ID] {
		below := f.use(c, seen)
		if below.any() {
			used.join(below)
		}
	}
	subjects := []abi.Subject{subject(d.Subject)}
	if d.User != nil {
		subjects = append(subjects, subject(*d.User))
	}
	for _, s := range subjects {
		h := holder{s, d.Capability}
		if f.grants[h] == nil {
			f.grants[h] = &names{}
		}
		f.grants[h].join(used)
	}
	return used
}

func subject(s audit.SubjectRef) abi.Subject { return abi.Subject(s.Kind + ":" + s.ID) }

// install is that of a biome of the organisation; what another's uses is kept nowhere.
func (f *finder) install(biome, digest string) *Install {
	in := f.installs[biome]
	if in == nil {
		in = &Install{Biome: biome, Digest: digest, Environments: []abi.EnvironmentRef{f.environment}}
		if f.known.Own(biome) {
			f.installs[biome] = in
		}
	}
	return in
}

func (f *finder) line(l *audit.Line, d *audit.Decided, in *Install, used *names) {
	if info, known := l.Code.Info(); known && info.Kind == abi.KindPermissionDenied {
		return // it was refused: nothing was used
	}
	switch l.Function {
	case "capability_invoke":
		in.Calls = with(in.Calls, abi.CapabilityRef(l.Target))
	case "secret_hmac":
		in.Secrets = with(in.Secrets, l.Target)
	case "http_fetch":
		if l.Secret != "" {
			in.Secrets = with(in.Secrets, l.Secret)
		}
		if e := endpointOf(l.Target, in.Endpoints, f.known.Endpoints(d.Biome, d.Digest)); e != "" {
			in.Endpoints = with(in.Endpoints, e)
		}
	default:
		used.touch(l.Function, l.Target)
	}
}

func with[T comparable](all []T, one T) []T {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

// endpointOf is an endpoint that admits a URL by any method, one that is used already if there is one.
func endpointOf(target string, used []string, all []*egress.Endpoint) string {
	u, err := egress.ParseURL(target)
	if err != nil {
		return ""
	}
	first := ""
	for _, e := range all {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if !e.Match(method, u) {
				continue
			}
			if slices.Contains(used, e.Name) {
				return e.Name
			}
			first = cmp.Or(first, e.Name)
		}
	}
	return first
}
