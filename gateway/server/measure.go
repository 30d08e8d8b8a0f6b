package server

// measure adds what the parts say of themselves when the metrics are read.
func (s *Server) measure() {
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, g := range []struct {
		name, help string
		value      func() float64
	}{
		{"ecotone_invocations_running", "Invocations that run or wait.", func() float64 { return float64(s.pipeline.Running()) }},
		{"ecotone_invocations_waiting", "Invocations that wait for a place to run.", func() float64 { return float64(s.pipeline.Waiting()) }},
		{"ecotone_approvals_pending", "Requests that wait for a person's word.", func() float64 { return float64(s.policy.Pending()) }},
		{"ecotone_policy_generation", "Number of the last policy change.", func() float64 { return float64(s.policy.Snapshot().Generation) }},
		{"ecotone_policy_stale", "1 while the policy that is known may not be the newest, and everything is denied.", func() float64 { return flag(s.policy.Snapshot().Stale) }},
		{"ecotone_audit_writable", "1 while the audit log can be written; otherwise nothing runs.", func() float64 { return flag(s.audit.Healthy()) }},
		{"ecotone_images_loaded", "Modules that are kept loaded, once for each organisation.", func() float64 { return float64(s.host.Stats().Images) }},
		{"ecotone_images_bytes", "What the loaded modules take.", func() float64 { return float64(s.host.Stats().ImageBytes) }},
		{"ecotone_pool_instances_idle", "Instances that are ready to be lent.", func() float64 { return float64(s.host.Pool().Idle) }},
		{"ecotone_pool_bytes", "What instances that are kept take of the memory budget.", func() float64 { return float64(s.host.Pool().Bytes) }},
		{"ecotone_draining", "1 once the server shuts down.", func() float64 { return flag(s.draining.Load()) }},
	} {
		s.metrics.Gauge(g.name, g.help, g.value)
	}
	if s.certs != nil {
		s.metrics.Gauge("ecotone_tls_certificate_expires_seconds", "When the certificate runs out, in seconds since 1970.", func() float64 { return float64(s.certs.Expires().Unix()) })
	}
	for _, c := range []struct {
		name, help string
		value      func() float64
	}{
		{"ecotone_guest_starts_total", "Invocations for which guest code was entered.", func() float64 { return float64(s.host.Started()) }},
		{"ecotone_audit_entries_total", "Entries of the audit log that are on disk.", func() float64 { return float64(s.audit.Entries()) }},
		{"ecotone_pool_instances_made_total", "Instances made.", func() float64 { return float64(s.host.Pool().Made) }},
		{"ecotone_pool_instances_closed_total", "Instances closed.", func() float64 { return float64(s.host.Pool().Discarded) }},
		{"ecotone_pool_mismatches_total", "Instances that differed from their image when they were to be lent; anything but 0 is a fault.", func() float64 { return float64(s.host.Pool().Mismatches) }},
		{"ecotone_compile_children_total", "Compile children started for a module.", func() float64 { return float64(s.host.Compiled().Children) }},
		{"ecotone_artifacts_refused_total", "Compiled forms that were not what they should be, and were made again.", func() float64 { return float64(s.host.Compiled().Refused) }},
	} {
		s.metrics.Counter(c.name, c.help, c.value)
	}
}
