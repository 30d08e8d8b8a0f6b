package meter

// stackSlack is for what lies above the last frame that is accounted: the added functions and
// the way into the host.
const stackSlack = 4 << 10

// accounts decides whose frames are accounted one by one. It is enough to do so for the
// functions that can be on the stack more than once, which are those on a cycle of the call
// graph: of the others each is there at most once, so together they take no more than the
// heaviest path. When that is too much, functions that call are accounted too, and when it
// still is, all. It returns the bytes that are to be kept free for the rest.
func (r *rewriter) accounts() int64 {
	g := newGraph(r)
	g.components()
	if rest := g.heaviest; rest <= r.opt.StackBytes/4 {
		return rest
	}
	var rest int64
	for i := range r.fact {
		f := &r.fact[i]
		f.account = f.account || f.calls
		if !f.account {
			rest = max(rest, f.frame)
		}
	}
	if rest <= r.opt.StackBytes/4 {
		return rest
	}
	for i := range r.fact {
		r.fact[i].account, r.fact[i].leaf = true, false
	}
	return 0
}

// graph is the call graph: a node for each function, then one for each type, which stands for
// an indirect call of that type and leads to every function such a call may reach.
type graph struct {
	facts   []fact
	targets [][]uint32 // by type

	index, low []uint32
	onStack    []bool
	stack      []uint32
	next       uint32
	weight     []int64 // of the heaviest path from a node, frames that are accounted apart
	heaviest   int64
}

func newGraph(r *rewriter) *graph {
	functions, types := len(r.fact), len(r.m.Types)
	n := functions + types
	g := &graph{
		facts: r.fact, targets: make([][]uint32, types),
		index: make([]uint32, n), low: make([]uint32, n), onStack: make([]bool, n), weight: make([]int64, n),
	}
	for i, reachable := range r.reachable {
		if reachable {
			g.targets[r.fact[i].typ] = append(g.targets[r.fact[i].typ], uint32(i))
		}
	}
	return g
}

// edge returns the k-th node that node v leads to.
func (g *graph) edge(v uint32, k int) (uint32, bool) {
	if int(v) >= len(g.facts) {
		to := g.targets[int(v)-len(g.facts)]
		if k < len(to) {
			return to[k], true
		}
		return 0, false
	}
	f := &g.facts[v]
	if k < len(f.callees) {
		return f.callees[k], true
	}
	if k -= len(f.callees); k < len(f.indirect) {
		return uint32(len(g.facts)) + f.indirect[k], true
	}
	return 0, false
}

// components finds the cycles by Tarjan's algorithm, without recursion, and the weight of
// each node's heaviest path as it goes: a component is complete only after all it leads to.
func (g *graph) components() {
	type step struct {
		v uint32
		k int
	}
	var path []step
	enter := func(v uint32) {
		g.next++
		g.index[v], g.low[v] = g.next, g.next
		g.stack, g.onStack[v] = append(g.stack, v), true
		path = append(path, step{v, 0})
	}
	for root := range uint32(len(g.facts)) {
		if g.index[root] != 0 {
			continue
		}
		enter(root)
		for len(path) > 0 {
			top := &path[len(path)-1]
			v := top.v
			if to, ok := g.edge(v, top.k); ok {
				top.k++
				if g.index[to] == 0 {
					enter(to)
				} else if g.onStack[to] {
					g.low[v] = min(g.low[v], g.index[to])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				below := path[len(path)-1].v
				g.low[below] = min(g.low[below], g.low[v])
			}
			if g.low[v] == g.index[v] {
				g.complete(v)
			}
		}
	}
}

// complete takes a component off the stack, down to v.
func (g *graph) complete(v uint32) {
	from := len(g.stack) - 1
	for g.stack[from] != v {
		from--
	}
	members := g.stack[from:]
	cycle := len(members) > 1
	var weight int64
	for _, m := range members {
		g.onStack[m] = false
		for k := 0; ; k++ {
			to, ok := g.edge(m, k)
			if !ok {
				break
			}
			cycle = cycle || to == m
			weight = max(weight, g.weight[to])
		}
	}
	if !cycle && int(v) < len(g.facts) {
		weight += g.facts[v].frame
	}
	for _, m := range members {
		g.weight[m] = weight
		if cycle && int(m) < len(g.facts) {
			g.facts[m].account, g.facts[m].leaf = true, false
		}
	}
	g.heaviest = max(g.heaviest, weight)
	g.stack = g.stack[:from]
}
