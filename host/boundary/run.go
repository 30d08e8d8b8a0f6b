package boundary

import (
	"time"

	"github.com/ecotone-dev/ecotone/host/share"
)

// Began is when the invocation was made.
func (inv *Invocation) Began() time.Time { return inv.start }

// Share is what pays for what the host does to run the invocation's guest; nil pays nothing.
func (inv *Invocation) Share() *share.Org { return inv.payer }
