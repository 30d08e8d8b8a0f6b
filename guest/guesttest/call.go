package guesttest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest"
)

const classification = "internal" // of every key and file here

func (b boundary) Input() int64 {
	done, refused := b.fills("input")
	defer done()
	if refused != 0 {
		return refused
	}
	return b.leave(b.h.input, nil)
}

func (b boundary) ResultRead(dst []byte, off int) int64 {
	done, refused := b.call("result_read")
	defer done()
	if refused != 0 {
		return refused
	}
	return window(dst, b.h.body, off)
}

func (b boundary) ResultMeta(dst []byte, off int) int64 {
	done, refused := b.call("result_meta")
	defer done()
	if refused != 0 {
		return refused
	}
	meta := b.h.meta
	if meta == nil {
		meta = []byte("{}")
	}
	return window(dst, meta, off)
}

func window(dst, src []byte, off int) int64 { return int64(copy(dst, src[min(off, len(src)):])) }

func (b boundary) Output(data []byte) int64 {
	done, refused := b.call("output")
	defer done()
	switch {
	case refused != 0:
		return refused
	case int64(len(data)) > b.h.Limits.Get(abi.LimitOutputBytes):
		b.h.outcome.Output = nil
		return fail(guest.ETOOBIG)
	}
	b.h.outcome.Output = append([]byte{}, data...)
	return 0
}

func (b boundary) Error(code, message string) int64 {
	done, refused := b.call("error")
	defer done()
	switch {
	case refused != 0:
		return refused
	case len(code) > 64 || len(message) > 4<<10:
		return fail(guest.ETOOBIG)
	case code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "":
		return fail(guest.EINVAL)
	}
	b.h.outcome.Failure = &guest.Failure{Code: code, Message: message}
	return 0
}

func (b boundary) Log(level int32, message string) int64 {
	done, refused := b.call("log")
	defer done()
	switch {
	case refused != 0:
		return refused
	case level < 0 || level > int32(guest.LevelError):
		return fail(guest.EINVAL)
	}
	message = message[:min(int64(len(message)), b.h.Limits.Get(abi.LimitLogLineBytes))]
	b.h.outcome.Logs = append(b.h.outcome.Logs, Record{guest.Level(level), message})
	return 0
}

func (b boundary) TimeNow() int64 {
	done, refused := b.call("time_now")
	defer done()
	if refused != 0 {
		return refused
	}
	return b.h.Clock.UnixNano()
}

func (b boundary) Random(dst []byte) int64 {
	done, refused := b.call("random")
	defer done()
	if refused != 0 {
		return refused
	}
	if b.h.randomBuf += int64(len(dst)); b.h.randomBuf > b.h.Limits.Get(abi.LimitRandomBytes) {
		return fail(guest.EQUOTA)
	}
	if _, err := io.ReadFull(b.h.Rand, dst); err != nil {
		return fail(guest.EINTERNAL)
	}
	return int64(len(dst))
}

func (b boundary) keyProblem(key string) guest.Errno {
	if key == "" || int64(len(key)) > b.h.Limits.Get(abi.LimitKeyBytes) || strings.ContainsRune(key, 0) {
		return guest.EINVAL
	}
	return 0
}

func (b boundary) KVGet(key string) int64 {
	done, refused := b.fills("kv_get")
	defer done()
	if refused != 0 {
		return refused
	}
	if e := b.keyProblem(key); e != 0 {
		return fail(e)
	}
	value, ok := b.h.KV[key]
	if !ok {
		return fail(guest.ENOENT)
	}
	sum := sha256.Sum256(value)
	return b.leave(value, map[string]any{"version": string(appendHex(nil, sum[:8])), "classification": classification})
}

func (b boundary) KVPut(key string, value []byte) int64 {
	done, refused := b.fills("kv_put")
	defer done()
	if refused != 0 {
		return refused
	}
	if e := b.keyProblem(key); e != 0 {
		return fail(e)
	}
	if int64(len(value)) > b.h.Limits.Get(abi.LimitValueBytes) {
		return fail(guest.ETOOBIG)
	}
	if _, exists := b.h.KV[key]; !exists && int64(len(b.h.KV)) >= b.h.Limits.Get(abi.LimitKeys) {
		return fail(guest.EQUOTA)
	}
	b.h.KV[key] = slices.Clone(value)
	return 0
}

func (b boundary) KVDelete(key string) int64 {
	done, refused := b.fills("kv_delete")
	defer done()
	if refused != 0 {
		return refused
	}
	if e := b.keyProblem(key); e != 0 {
		return fail(e)
	}
	if _, ok := b.h.KV[key]; !ok {
		return fail(guest.ENOENT)
	}
	delete(b.h.KV, key)
	return 0
}

func (b boundary) KVList(prefix, after string, limit int) int64 {
	done, refused := b.fills("kv_list")
	defer done()
	if refused != 0 {
		return refused
	}
	var keys []string
	for k := range b.h.KV {
		if strings.HasPrefix(k, prefix) && k > after {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	part, more := page(keys, limit)
	return b.leave(mustJSON(part), moreMeta{more})
}

func (b boundary) CapabilityInvoke(ref string, input []byte) int64 {
	done, refused := b.fills("capability_invoke")
	defer done()
	if refused != 0 {
		return refused
	}
	if _, err := abi.ParseCapabilityRef(ref); err != nil {
		return fail(guest.EINVAL)
	}
	child := b.h.Children[ref]
	if child == nil {
		return fail(guest.EDENIED)
	}
	if b.h.children++; b.h.children > b.h.Limits.Get(abi.LimitChildren) {
		return fail(guest.EQUOTA)
	}
	out, err := child(slices.Clone(input))
	var e guest.Errno
	switch {
	case errors.As(err, &e):
		return fail(e)
	case err != nil:
		b.leave(mustJSON(map[string]any{
			"type": "urn:ecotone:code:GUEST_ERROR", "title": "child", "status": 422, "code": "GUEST_ERROR",
			"kind": "invalid_argument", "retryable": false, "detail": err.Error(),
		}), nil)
		return fail(guest.ECHILD)
	}
	return b.leave(out, map[string]any{"invocation": "01JGFJJZ000000000000000000", "classification": classification})
}

func (b boundary) HTTPFetch(request, body []byte) int64 {
	done, refused := b.fills("http_fetch")
	defer done()
	if refused != 0 {
		return refused
	}
	var req guest.Request
	dec := json.NewDecoder(bytes.NewReader(request))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return fail(guest.EINVAL)
	}
	u, err := url.Parse(req.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return fail(guest.EINVAL)
	}
	if _, known := b.h.Secrets[req.Secret]; req.Secret != "" && !known {
		return fail(guest.ESECRET)
	}
	if b.h.HTTP == nil {
		return fail(guest.EDENIED)
	}
	if b.h.requests++; b.h.requests > b.h.Limits.Get(abi.LimitHTTPRequests) {
		return fail(guest.EQUOTA)
	}
	req.Body = slices.Clone(body)
	resp, err := b.h.HTTP(req)
	var e guest.Errno
	switch {
	case errors.As(err, &e):
		return fail(e)
	case err != nil:
		return fail(guest.EIO)
	case int64(len(resp.Body)) > b.h.Limits.Get(abi.LimitHTTPBytes):
		return fail(guest.ETOOBIG)
	}
	return b.leave(resp.Body, map[string]any{"status": resp.Status, "headers": resp.Headers})
}

func (b boundary) SecretHMAC(name string, message []byte) int64 {
	done, refused := b.fills("secret_hmac")
	defer done()
	if refused != 0 {
		return refused
	}
	key, ok := b.h.Secrets[name]
	if !ok {
		return fail(guest.ESECRET)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return b.leave(mac.Sum(nil), nil)
}

func (b boundary) AuditQuery(query []byte) int64 {
	done, refused := b.fills("audit_query")
	defer done()
	if refused != 0 {
		return refused
	}
	var q guest.Query
	dec := json.NewDecoder(bytes.NewReader(query))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return fail(guest.EINVAL)
	}
	if b.h.Audit == nil {
		return fail(guest.EDENIED)
	}
	answer, err := b.h.Audit(q)
	var e guest.Errno
	switch {
	case errors.As(err, &e):
		return fail(e)
	case err != nil:
		return fail(guest.EINTERNAL)
	}
	return b.leave(mustJSON(answer), nil)
}

func appendHex(dst, src []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range src {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}
