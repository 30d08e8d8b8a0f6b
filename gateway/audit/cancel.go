package audit

import "time"

// CancelState is the closed set of how far a requested cancellation is. It only ever moves on. That an
// end was requested is not that it came: until it is proven the guest may run, and what it holds
// is not anybody else's (M41).
type CancelState string

const (
	CancelRequested    CancelState = "requested"    // the guest's goroutine has not looked yet
	CancelAcknowledged CancelState = "acknowledged" // it has, and the guest is on its way out
	CancelProven       CancelState = "proven"       // the guest's call has returned, its instance is not lent again, its row is closed
)

// Cancel is what the row of an invocation says of its cancellation. That there is a row that ended
// is the proof.
type Cancel struct {
	Requested time.Time `json:"requestedAt"`
	// Acknowledged is nil when the invocation ended before it had seen the request.
	Acknowledged *time.Time `json:"acknowledgedAt,omitempty"`
}
