package audit

import (
	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

// ulidOf reads exactly the canonical spelling of a ULID.
func ulidOf(s string) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(s)
	var again [ulid.EncodedSize]byte
	return id, err == nil && id.MarshalTextTo(again[:]) == nil && string(again[:]) == s
}

// parseID accepts exactly the canonical spelling of a ULID.
func parseID(s string) (ulid.ULID, error) {
	id, ok := ulidOf(s)
	if !ok {
		return ulid.ULID{}, abi.Errorf(abi.CodeInvalidRequest, "%s is not an audit id", abi.Quote(s)).
			WithHint("an audit id is a ULID: 26 characters in upper case")
	}
	return id, nil
}
