package audit

import (
	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

// parseID accepts exactly the canonical spelling of a ULID.
func parseID(s string) (ulid.ULID, error) {
	id, err := ulid.ParseStrict(s)
	if err != nil || id.String() != s {
		return ulid.ULID{}, abi.Errorf(abi.CodeInvalidRequest, "%s is not an audit id", abi.Quote(s)).
			WithHint("an audit id is a ULID: 26 characters in upper case")
	}
	return id, nil
}
