package gate

import "github.com/ecotone-dev/ecotone/gateway/rate"

// Rates is how often an organisation's subjects and clients may invoke (X40).
type Rates struct {
	Subject rate.Limit // one subject behind one client
	Client  rate.Limit // everything that comes by one client: the principal that opened the session
}

// MaxBuckets is how many buckets one invocation concerns at most.
const MaxBuckets = 2 + numGrants

// Buckets appends to asks what an invocation counts against: its subject, its client, and every
// grant it uses that has a ceiling of its own. d is what was decided of it so far. A child counts
// as its caller's subject and client do: a biome is no amplifier.
func Buckets(asks []rate.Ask, s *Snapshot, f *Facts, d *Decision) []rate.Ask {
	var r Rates
	if o := s.Orgs.At(f.Org); o != nil {
		r = o.Rates
	}
	asks = append(asks,
		rate.Ask{Key: rate.Key{Kind: rate.Subject, Org: f.Org, Client: f.Client, ID: string(f.Subject)}, Limit: r.Subject},
		rate.Ask{Key: rate.Key{Kind: rate.Client, Org: f.Org, Client: f.Client}, Limit: r.Client},
	)
	for _, g := range d.grants {
		if g != nil && g.Rate != nil {
			asks = append(asks, rate.Ask{Key: rate.Key{Kind: rate.Grant, Org: f.Org, ID: g.ID}, Limit: g.Rate.PerHour})
		}
	}
	return asks
}
