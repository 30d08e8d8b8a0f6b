package report

import (
	"math"
	"slices"
)

// Estimate is the median of some rounds, with the interval that holds the true median 95 times in
// 100 whatever the rounds are distributed like: between two of the rounds themselves. Fewer than
// six rounds are too few for that; theirs is from the least to the most.
type Estimate struct {
	Mid, Low, High float64
	Rounds         int
}

// Of estimates; it does not change v. Of nothing it is all zeros.
func Of(v []float64) Estimate {
	if len(v) == 0 {
		return Estimate{}
	}
	s := slices.Sorted(slices.Values(v))
	k := rank(len(s))
	return Estimate{Mid: Median(s), Low: s[k], High: s[len(s)-1-k], Rounds: len(s)}
}

// rank is the largest k for which the k lowest and the k highest of n rounds can be left out.
func rank(n int) int {
	// The true median is below the k lowest or above the k highest with twice the probability
	// that fewer than k+1 of n fair coins show heads.
	tail, term := 0.0, math.Pow(0.5, float64(n))
	for k := range n / 2 {
		tail += term
		if 2*tail > 0.05 {
			return max(0, k-1)
		}
		term *= float64(n-k) / float64(k+1)
	}
	return 0
}

// Median is the middle one, or between the two in the middle; 0 of nothing.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// spread is how far the interval reaches from the middle, as a share of it.
func (e Estimate) spread() float64 {
	if e.Mid == 0 {
		return 0
	}
	return max(e.High/e.Mid-1, 1-e.Low/e.Mid)
}
