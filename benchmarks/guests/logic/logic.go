// Package logic is what the guests of the benchmark compute. Every host, ours and the peers',
// runs this code; only the few lines that fetch input and hand over output differ.
package logic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
)

// SumIn is the input of [Sum].
type SumIn struct {
	Items []int64 `json:"items"`
}

// SumOut is the output of [Sum].
type SumOut struct {
	Count int   `json:"count"`
	Sum   int64 `json:"sum"`
}

// Sum says how many items there are and their sum.
func Sum(in SumIn) (out SumOut, err error) {
	for _, v := range in.Items {
		out.Sum += v
	}
	out.Count = len(in.Items)
	return out, nil
}

// ComputeIn is the input of [Compute].
type ComputeIn struct {
	N int `json:"n"`
}

// ComputeOut is the output of [Compute].
type ComputeOut struct {
	Digest string `json:"digest"`
	Primes int    `json:"primes"`
}

// Compute counts the primes below n and hashes n bytes: work and little else.
func Compute(in ComputeIn) (out ComputeOut, err error) {
	composite := make([]byte, in.N)
	for i := 2; i < in.N; i++ {
		if composite[i] != 0 {
			continue
		}
		out.Primes++
		for j := i * i; j < in.N; j += i {
			composite[j] = 1
		}
	}
	digest := sha256.Sum256(composite)
	out.Digest = hex.EncodeToString(digest[:4])
	return out, nil
}

// JSONed is f from one JSON text to another.
func JSONed[In, Out any](f func(In) (Out, error)) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		var in In
		if err := json.Unmarshal(text, &in); err != nil {
			return nil, err
		}
		out, err := f(in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// SHA256 hashes a block of 4 KiB n times over.
func SHA256(n int32) int32 {
	var block [4096]byte
	for range n {
		d := sha256.Sum256(block[:])
		copy(block[:], d[:])
	}
	return int32(block[0])
}

// Sort sorts n pseudo-random numbers.
func Sort(n int32) int32 {
	s := make([]int, n)
	x := uint32(1)
	for i := range s {
		x = x*1664525 + 1013904223
		s[i] = int(x)
	}
	sort.Ints(s)
	return int32(s[0])
}

// JSON decodes and encodes a small document n times.
func JSON(n int32) int32 {
	doc := []byte(`{"id":7,"name":"a small document","tags":["one","two","three"],"nested":{"x":1.5,"y":[1,2,3]}}`)
	total := 0
	for range n {
		var v map[string]any
		if json.Unmarshal(doc, &v) != nil {
			return -1
		}
		out, err := json.Marshal(v)
		if err != nil {
			return -1
		}
		total += len(out)
	}
	return int32(total)
}
