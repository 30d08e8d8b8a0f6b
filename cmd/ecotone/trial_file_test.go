package main

import "testing"

// Documents are compared as values: whole numbers to the last digit, others as the double they are.
func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1 } `, true},
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`0.1`, `0.10000000000000000555`, true},
		{`1e999`, `1e998`, false},
		{`"a"`, `"\u0061"`, true},
		{`"1"`, `1`, false},
		{`{}`, `[]`, false},
		{`null`, `false`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`1`, ``, false},
	} {
		if sameJSON([]byte(c.a), []byte(c.b)) != c.same || sameJSON([]byte(c.b), []byte(c.a)) != c.same {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.same)
		}
	}
}
