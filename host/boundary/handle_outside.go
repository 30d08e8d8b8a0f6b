package boundary

import (
	"context"
	"net/url"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
)

// Functions that act outside the invocation: children, requests, secrets, the audit. Each is
// announced before it acts; its check settles what the authority alone can settle.

// childAllowed holds a child to the install grant, the depth, the cycle rule and the budget.
// What the callee's own gate says is the service's to find out (S4).
func childAllowed(c *call) *abi.Error {
	target(c)
	spec := c.inv.authority.Spec()
	ref, err := abi.ParseCapabilityRef(c.text(0))
	switch {
	case err != nil:
		return abi.AsError(err)
	case !slices.Contains(spec.Calls, ref):
		return abi.Errorf(abi.CodeMissingGrant, "the install grant does not let this biome call %s", abi.Quote(string(ref)))
	case ref == spec.Capability || slices.Contains(spec.Chain, ref):
		return abi.Errorf(abi.CodeChildCycle, "%s is already in this chain of invocations", abi.Quote(string(ref)))
	case int64(len(spec.Chain)) >= c.inv.limits.Get(abi.LimitChildDepth):
		return abi.Errorf(abi.CodeChildDepth, "invocations are nested at most %d deep", c.inv.limits.Get(abi.LimitChildDepth))
	}
	return c.inv.spend(childrenMade, 1, abi.LimitChildren)
}

func invokeChild(ctx context.Context, c *call) (Result, error) {
	if c.inv.services.Children == nil {
		return unavailable(c)
	}
	c.inv.settle() // what the guest was handed is the child's to use
	return c.inv.services.Children.InvokeChild(ctx, c.inv.scope(), abi.CapabilityRef(c.text(0)), c.bytes(1))
}

// fetchAllowed decodes the request document, so that journal and receipt can name where it
// goes, and takes from the budget. Rule and flow are settled by the service, before it
// resolves the name (S16).
func fetchAllowed(c *call) *abi.Error {
	req := &c.request
	if err := abi.DecodeStrict(c.bytes(0), req); err != nil {
		return abi.AsError(err)
	}
	at, refusal := place(req.URL)
	if refusal != nil {
		return refusal
	}
	c.line.Target, c.line.Secret = at, plainTarget(req.Secret)
	if req.Secret != "" && !slices.Contains(c.inv.authority.Spec().Secrets, req.Secret) {
		return secretDenied()
	}
	return c.inv.spend(requestsSent, 1, abi.LimitHTTPRequests)
}

// place is what of a URL may be written down: not its user, query and fragment, which carry
// credentials (PF-F6).
func place(raw string) (string, *abi.Error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", abi.Errorf(abi.CodeURLInvalid, "the URL is not an absolute one with a host: %w", err)
	}
	return plainTarget(u.Scheme + "://" + u.Host + u.EscapedPath()), nil
}

func fetch(ctx context.Context, c *call) (Result, error) {
	if c.inv.services.HTTP == nil {
		return unavailable(c)
	}
	return c.inv.services.HTTP.Fetch(ctx, c.inv.scope(), c.request, c.bytes(1))
}

func secretAllowed(c *call) *abi.Error {
	target(c)
	if !slices.Contains(c.inv.authority.Spec().Secrets, c.text(0)) {
		return secretDenied()
	}
	return nil
}

// secretDenied is one answer for a secret that is absent and one that is another's (PF-F2).
func secretDenied() *abi.Error {
	return abi.Errorf(abi.CodeSecretDenied, "there is no such secret for this use")
}

func secretHMAC(ctx context.Context, c *call) (Result, error) {
	if c.inv.services.Signer == nil {
		return unavailable(c)
	}
	return c.inv.services.Signer.HMAC(ctx, c.inv.scope(), c.text(0), c.bytes(1))
}

func auditQuery(ctx context.Context, c *call) (Result, error) {
	if c.inv.services.Audit == nil {
		return unavailable(c)
	}
	return c.inv.services.Audit.Query(ctx, c.inv.scope(), c.bytes(0))
}
