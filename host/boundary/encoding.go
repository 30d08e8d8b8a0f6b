package boundary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// codePrice is what a KiB of input or output costs that is decoded or encoded.
const codePrice = 20

// Decode turns the input, which is JSON, into the bytes that a foreign guest reads. It belongs before
// the guest runs; an input that does not decode is INPUT_SCHEMA_VIOLATION.
func (inv *Invocation) Decode() *abi.Error {
	encoding := inv.authority.Spec().InputEncoding
	if encoding == "" || encoding == abi.EncodingJSON {
		return nil
	}
	if err := inv.pay(kibs(int64(len(inv.input))) * codePrice); err != nil {
		return err
	}
	var text string
	if raw := bytes.TrimSpace(inv.input); len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return abi.Errorf(abi.CodeInputSchema, "the capability reads %s, so that its input is a JSON string", encoding)
	}
	if encoding == abi.EncodingText {
		inv.input = []byte(text)
		return nil
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return abi.Errorf(abi.CodeInputSchema, "the input is not base64, with padding: %w", err)
	}
	inv.input = decoded
	return nil
}

// encode turns what a foreign guest wrote into the JSON that callers see.
func (inv *Invocation) encode() *abi.Error {
	encoding := inv.authority.Spec().OutputEncoding
	if encoding == "" || encoding == abi.EncodingJSON {
		return nil
	}
	if err := inv.pay(kibs(int64(len(inv.output))) * codePrice); err != nil {
		return err
	}
	text := string(inv.output)
	switch {
	case encoding == abi.EncodingBase64:
		text = base64.StdEncoding.EncodeToString(inv.output)
	case !utf8.Valid(inv.output):
		return abi.Errorf(abi.CodeOutputInvalid, "the output is not text in UTF-8")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return abi.Errorf(abi.CodeInternal, "a string does not encode: %w", err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if most := inv.limits.Get(abi.LimitOutputBytes); int64(len(out)) > most {
		return abi.Errorf(abi.CodeOutputLimit, "the output as JSON is larger than %d bytes", most)
	}
	inv.output = out
	return nil
}
