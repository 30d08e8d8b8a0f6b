package admin

import "testing"

// Every route says what it reads and answers, and nothing else is said.
func TestContractIsTheRouteTable(t *testing.T) {
	routes, ids := map[string]bool{}, map[string]bool{}
	for _, rt := range routeTable {
		key := rt.method + " " + rt.path
		routes[key] = true
		said, there := spoken[key]
		switch {
		case !there || said.id == "" || ids[said.id]:
			t.Errorf("%s says nothing of what it reads and answers, or has no name of its own: %q", key, said.id)
		case (said.in != nil) != (rt.body == bodyJSON):
			t.Errorf("%s: the body in the table is %d, and it reads a %T", key, rt.body, said.in)
		case (said.out == nil) != rt.empty:
			t.Errorf("%s answers a %T", key, said.out)
		}
		ids[said.id] = true
	}
	for key := range spoken {
		if !routes[key] {
			t.Errorf("%s is no route", key)
		}
	}
}
