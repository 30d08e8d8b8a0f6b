// Package space is where data lives.
//
// It promises that a space never asks less care of its data than the space around it: a
// child's floor is at least its parent's and its clearance at most (X23). It refuses to know
// which environment acts on the data, which is another question (X69), and it grants nothing:
// being inside a space, or owning it, gives no right (X70).
package space

import (
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kind is the closed set of kinds (X69).
type Kind string

const (
	System  Kind = "system"
	Org     Kind = "org"
	Project Kind = "project"
	App     Kind = "app"
	Session Kind = "session"
	Biome   Kind = "biome"
	User    Kind = "user"
)

// kinds says what each kind of space may lie in, from least to most specific, and the
// environment a session in it is bound to unless it names one (X31). An organisation's space
// does not contain a user's (X70).
var kinds = map[Kind]struct {
	within      []Kind
	environment string
}{
	System:  {nil, "system"},
	Org:     {nil, "org"},
	User:    {nil, "org"},
	Project: {[]Kind{Org, Project}, "project"},
	App:     {[]Kind{Org, Project}, "app"},
	Biome:   {[]Kind{System, Org, Project}, "sandbox"},
	Session: {[]Kind{Org, Project, App, Biome, User}, "session"},
}

// UnmarshalText accepts exactly the kinds.
func (k *Kind) UnmarshalText(b []byte) error {
	if _, ok := kinds[Kind(b)]; !ok {
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not one of system, org, project, app, session, biome, user", abi.Quote(string(b)))
	}
	*k = Kind(b)
	return nil
}

// Environment is the environment of a session in a space of this kind that names none (X31).
func (k Kind) Environment() abi.EnvironmentRef { return abi.MakeEnvironmentRef(kinds[k].environment) }

// Space is one record. It is immutable once made.
type Space struct {
	Org        string             `json:"org"`
	ID         string             `json:"id"` // a slug, unique in the organisation
	Kind       Kind               `json:"kind"`
	Parent     string             `json:"parent,omitempty"` // id in the same organisation, or ""
	Production bool               `json:"production"`
	Dev        bool               `json:"dev"`       // made under --dev in a data directory made under --dev (S19)
	Floor      abi.Classification `json:"floor"`     // every invocation in the space starts at least here
	Clearance  abi.Classification `json:"clearance"` // nothing above is read in the space
	CreatedBy  string             `json:"createdBy"`
	CreatedAt  time.Time          `json:"createdAt"`
}

// Effective is what holds in a space, computed up the chain at use.
type Effective struct {
	Kind       Kind
	Production bool // the space or any around it
	Dev        bool // the space and all around it
	Personal   bool // a user's, or in one: nobody is let in by what is granted elsewhere (X70)
	Floor      abi.Classification
	Clearance  abi.Classification
}

// MaxDepth bounds how deep spaces nest.
const MaxDepth = 8

// Resolve computes what holds in a space from its chain, outermost first. An empty chain, or
// one with an unlabelled member, admits nothing: floor regulated, clearance public.
func Resolve(chain ...Space) Effective {
	if len(chain) == 0 {
		return Effective{Floor: abi.Regulated, Clearance: abi.Public}
	}
	e := Effective{Kind: chain[len(chain)-1].Kind, Dev: true, Floor: abi.Public, Clearance: abi.Regulated}
	for _, s := range chain {
		e.Production = e.Production || s.Production
		e.Dev = e.Dev && s.Dev
		e.Personal = e.Personal || s.Kind == User
		e.Floor = abi.Join(e.Floor, s.Floor)
		e.Clearance = abi.Meet(e.Clearance, s.Clearance)
	}
	return e
}

// Check refuses a space that cannot lie in the chain around it (outermost first, empty for a
// root), or that asks less care than the chain does: CEILING_LOOSENED (X23).
func (s Space) Check(around ...Space) *abi.Error {
	if _, err := abi.ParseSlug("a space", s.ID); err != nil {
		return abi.AsError(err).At("/id")
	}
	k, ok := kinds[s.Kind]
	if !ok {
		return abi.Errorf(abi.CodeInvalidRequest, "kind is missing").At("/kind")
	}
	if !s.Floor.Valid() || !s.Clearance.Valid() {
		return abi.Errorf(abi.CodeInvalidRequest, "floor and clearance must be given").At("/floor")
	}
	if len(around) >= MaxDepth {
		return abi.Errorf(abi.CodeInvalidRequest, "spaces nest at most %d deep", MaxDepth).At("/parent")
	}
	if len(around) == 0 {
		if len(k.within) > 0 {
			return abi.Errorf(abi.CodeInvalidRequest, "a space of kind %s needs a parent", s.Kind).At("/parent")
		}
	} else if !slices.Contains(k.within, around[len(around)-1].Kind) {
		return abi.Errorf(abi.CodeInvalidRequest, "a space of kind %s does not lie in one of kind %s", s.Kind, around[len(around)-1].Kind).At("/parent")
	}
	if len(around) > 0 {
		outer := Resolve(around...)
		if s.Floor < outer.Floor {
			return abi.Errorf(abi.CodeCeilingLoosened, "the floor of the space around it is %s; a child may only raise it", outer.Floor).At("/floor")
		}
		if s.Clearance > outer.Clearance {
			return abi.Errorf(abi.CodeCeilingLoosened, "the clearance of the space around it is %s; a child may only lower it", outer.Clearance).At("/clearance")
		}
	}
	if s.Floor > s.Clearance {
		return abi.Errorf(abi.CodeInvalidRequest, "the floor is above the clearance: nothing could run here").At("/floor")
	}
	return nil
}
