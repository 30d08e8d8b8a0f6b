package admin

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
)

// functions are the host functions that a module imports; not nil, because that is known. WASI's are
// not among them: they get at nothing.
func functions(r *admission.Report) []string {
	out := []string{}
	for _, i := range r.Imports {
		switch row, known := r.Face.Info(); {
		case !i.Known:
		case i.Module == abi.Module:
			out = append(out, i.Name)
		case known:
			if s, ok := row.Import(i.Module, i.Name); ok {
				out = append(out, s.Through...)
			}
		}
	}
	return out
}

func (s *Server) getPermissions(c *call) (*reply, error) {
	r, err := s.o.Policy.Permissions(c.principal, c.org, c.r.PathValue("name"), c.r.URL.Query().Get("digest"))
	return ok(r, err)
}
