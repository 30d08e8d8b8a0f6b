package data

import "testing"

// Every route says what it reads and answers, and nothing else is said.
func TestContractIsTheRouteTable(t *testing.T) {
	keys := map[string]bool{}
	for _, r := range routes {
		key := r.method + " " + r.pattern
		keys[key] = true
		if said := spoken[key]; said.id == "" || said.summary == "" || len(said.answers) == 0 {
			t.Errorf("%s says nothing of what it reads and answers", key)
		}
		if r.open != (r.pattern == documentPattern) {
			t.Errorf("%s is open: %v", key, r.open)
		}
	}
	for key := range spoken {
		if !keys[key] {
			t.Errorf("%s is no route", key)
		}
	}
}
