package host

// Loaded waits until loads in progress have ended, and what they made room for is freed.
func (h *Host) Loaded() { h.images.wg.Wait() }
