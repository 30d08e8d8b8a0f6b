package main

import "testing"

// PF-H10: a size that cannot be read is refused, and nothing is no limit.
func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"512MiB": 512 << 20, "2GiB": 2 << 30, "16384KiB": 16 << 20, "4294967296GiB": 1 << 62} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{
		"", "0", "1024", "GiB", "-1GiB", "+1GiB", "1.5GiB", "1e9GiB", "512XB", "512MB", "512 MiB", "0MiB", "15MiB", "4294967297GiB",
		"99999999999999999999GiB", "1GiB ", "0x10GiB", "1_0GiB",
	} {
		s := Size(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q is %d", text, s)
		}
	}
}
