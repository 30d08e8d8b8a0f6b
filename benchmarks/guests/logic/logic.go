// Package logic is what the guests of the benchmark compute. Every host, ours and the peers',
// runs this code; only the few lines that fetch input and hand over output differ.
package logic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
)

// Sum reads {"items":[…]} and answers how many there are and their sum.
func Sum(in []byte) ([]byte, error) {
	var req struct {
		Items []int64 `json:"items"`
	}
	if err := json.Unmarshal(in, &req); err != nil {
		return nil, err
	}
	var res struct {
		Count int   `json:"count"`
		Sum   int64 `json:"sum"`
	}
	for _, v := range req.Items {
		res.Sum += v
	}
	res.Count = len(req.Items)
	return json.Marshal(res)
}

// Compute reads {"n":…}, counts the primes below n and hashes n bytes: work and little else.
func Compute(in []byte) ([]byte, error) {
	var req struct {
		N int `json:"n"`
	}
	if err := json.Unmarshal(in, &req); err != nil {
		return nil, err
	}
	composite := make([]byte, req.N)
	primes := 0
	for i := 2; i < req.N; i++ {
		if composite[i] != 0 {
			continue
		}
		primes++
		for j := i * i; j < req.N; j += i {
			composite[j] = 1
		}
	}
	digest := sha256.Sum256(composite)
	return json.Marshal(map[string]any{"primes": primes, "digest": hex.EncodeToString(digest[:4])})
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
