// Command kernels is work to measure metering by: what real guests spend their time on.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
)

func main() {}

//go:wasmexport sha256
func digest(rounds int32) int32 {
	data := bytes.Repeat([]byte{'x'}, 4096)
	var sum [sha256.Size]byte
	for range rounds {
		sum = sha256.Sum256(data)
		data[0] = sum[0]
	}
	return int32(sum[0])
}

//go:wasmexport sort
func sort(n int32) int32 {
	list, seed := make([]int32, n), uint32(1)
	for i := range list {
		seed = seed*1664525 + 1013904223
		list[i] = int32(seed)
	}
	slices.Sort(list)
	return list[n/2]
}

type document struct {
	Name  string         `json:"name"`
	Items []int          `json:"items"`
	More  map[string]any `json:"more"`
}

//go:wasmexport json
func roundtrip(rounds int32) int32 {
	raw := []byte(`{"name":"a name of some length","items":[1,2,3,4,5,6,7,8,9,10],"more":{"a":1.5,"b":"text","c":[true,null,{"d":"e"}]}}`)
	n := 0
	for range rounds {
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return -1
		}
		out, err := json.Marshal(d)
		if err != nil {
			return -2
		}
		n += len(out)
	}
	return int32(n)
}
