package invoke

import "github.com/ecotone-dev/ecotone/gateway/gate"

// A guest that computes or calls the host meets the end of its authority by itself, at the next slice
// of fuel or the next host call. One that waits (for an origin, for a place to run) meets nothing: it
// is told, by whoever changed the policy before the change is answered, and by the watch when a right
// ran out with time (S18).

// changed stops what the policy does not allow any more. Most invocations are of organisations that
// the change does not concern, and cost a comparison.
func (p *Pipeline) changed(*gate.Snapshot) { p.live.each((*running).recheck) }

// recheck stops an invocation whose authority has ended. Of a child it ends the child alone: its
// parent is told as of any child that failed.
func (r *running) recheck() {
	if err := r.authority.Current(); err != nil {
		r.stop(err)
	}
}
