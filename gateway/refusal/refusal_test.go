package refusal

import (
	"log/slog"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// PF-G1: those who show no credential crowd out nobody's rows but their own, and what is folded
// is counted.
func TestStrangersCrowdOutNobody(t *testing.T) {
	log, err := audit.Open(audit.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	r := New(log, slog.New(slog.DiscardHandler))
	r.anonymous.SetBurst(2)
	r.anonymous.SetLimit(0)
	stranger := audit.Refused{Code: abi.CodeUnauthenticated, Listener: "invoke"}
	for range 2 {
		if r.Record(t.Context(), "", stranger) == "" {
			t.Error("a refusal within the rate has no row")
		}
	}
	for range 7 {
		if r.Record(t.Context(), "", stranger) != "" {
			t.Error("a refusal past the rate has a row")
		}
	}
	id := r.Record(t.Context(), "default", audit.Refused{Code: abi.CodeInvalidRequest, Listener: "invoke"})
	if row, err := log.Get(t.Context(), "default", id); err != nil || row.Refused.Code != abi.CodeInvalidRequest {
		t.Errorf("row %+v, %v", row, err)
	}
	r.Close()
	page, err := log.Rows(t.Context(), "", audit.Query{Kind: audit.RowRefused})
	if err != nil || len(page.Rows) != 3 || page.Rows[0].Refused.Detail != "7 refusals past the rate at which each has a row" {
		t.Errorf("%+v, %v", page.Rows, err)
	}
}
