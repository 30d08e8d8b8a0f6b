// Command tck is the guest of the conformance kit in Go: what abi/tck/guest/tck.c does, by way of the
// SDK, so that each function of it is called by some case. Raw pointers are not a thing it can be told
// to use. It understands the scripts that file describes.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/guest"
)

func main() {}

//go:wasmexport call_run
func callRun() int32 { return run() }

//go:wasmexport call_child
func callChild() int32 { return run() }

// argument is bytes, a number, or the size of a buffer.
type argument struct {
	text   string
	n      int64
	buffer int // -1: none
}

func parse(word, version string) argument {
	a := argument{buffer: -1}
	rest := word[1:]
	switch word[0] {
	case 'x':
		a.text = unhex(rest)
	case 'r':
		times, digits, _ := strings.Cut(rest, ":")
		a.text = strings.Repeat(unhex(digits), int(number(times)))
	case 'n':
		a.n = number(rest)
	case 'b':
		a.buffer = int(number(rest))
	case 'v':
		a.text = version
	default:
		panic(word)
	}
	return a
}

func unhex(digits string) string {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// register is what is in the result register.
func register(from func(*byte, uint32, uint32) int64, most int) []byte {
	to := make([]byte, most)
	return to[:max(from(&to[0], 0, uint32(most)), 0)]
}

const most = 64 << 10

// length is that of the result, unless the call was refused.
func length(err error) (int64, error) { return int64(len(register(resultRead, most))), err }

func done(err error) (int64, error) { return 0, err }

func status(n int64) (int64, error) {
	if n < 0 {
		return 0, guest.Errno(-n)
	}
	return n, nil
}

// call makes one call. What it filled a buffer with comes back too.
func call(f string, a []argument) (value int64, filled []byte, err error) {
	if len(a) > 0 && a[0].buffer >= 0 {
		filled = make([]byte, a[0].buffer, a[0].buffer+1)
		at := &filled[:1][0]
		switch f {
		case "result_read":
			value, err = status(resultRead(at, uint32(a[1].n), uint32(len(filled))))
		case "result_meta":
			value, err = status(resultMeta(at, uint32(a[1].n), uint32(len(filled))))
		case "random":
			value, err = int64(len(filled)), guest.Random(filled)
		default:
			panic(f)
		}
		if err != nil {
			value = 0
		}
		return value, filled[:value], err
	}
	value, err = plain(f, a)
	return value, nil, err
}

func plain(f string, a []argument) (int64, error) {
	switch f {
	case "input":
		data, err := guest.Input()
		return int64(len(data)), err
	case "output":
		return done(guest.Output([]byte(a[0].text)))
	case "error": // the SDK makes the best of a bad code
		n, err := status(rawError(a[0].text, a[1].text))
		if err == nil {
			err = guest.Fail(a[0].text, a[1].text)
		}
		return n, err
	case "log":
		if a[0].n < 0 || a[0].n > 3 {
			return status(rawLog(int32(a[0].n), a[1].text))
		}
		guest.Logf(guest.Level(a[0].n), "%s", a[1].text)
		return 0, nil
	case "time_now":
		return guest.Now().UnixNano(), nil
	case "kv_get":
		item, err := guest.KV.Item(a[0].text)
		return int64(len(item.Value)), err
	case "kv_put":
		return done(guest.KV.Put(a[0].text, []byte(a[1].text)))
	case "kv_delete":
		return done(guest.KV.Delete(a[0].text))
	case "kv_list":
		_, _, err := guest.KV.List(a[0].text, a[1].text, int(a[2].n))
		return length(err)
	}
	if strings.HasPrefix(f, "file_") {
		return file(f, a)
	}
	return outside(f, a)
}

func file(f string, a []argument) (int64, error) {
	w := guest.Files
	text := func(i int) string { return a[i].text }
	data := func(i int) []byte { return []byte(a[i].text) }
	version := func(_ string, err error) (int64, error) { return 0, err }
	switch f {
	case "file_stat":
		_, err := w.Stat(text(0))
		return length(err)
	case "file_read":
		c, err := w.Read(text(0), a[1].n, int(a[2].n))
		return int64(len(c.Data)), err
	case "file_list":
		_, _, err := w.List(text(0), text(1), int(a[2].n))
		return length(err)
	case "file_create":
		return version(w.Create(text(0), data(1)))
	case "file_write":
		return version(w.Write(text(0), data(1)))
	case "file_replace":
		return version(w.Replace(text(0), text(1), data(2)))
	case "file_edit":
		e, err := w.Edit(text(0), text(1), text(2), a[3].n == 1)
		return int64(e.Count), err
	case "file_copy":
		return done(w.Copy(text(0), text(1)))
	case "file_move":
		return done(w.Move(text(0), text(1)))
	case "file_remove":
		return done(w.Remove(text(0)))
	case "file_mkdir":
		return done(w.Mkdir(text(0)))
	case "file_grep":
		_, _, err := w.Grep(text(0), text(1), int(a[2].n))
		return length(err)
	case "file_glob":
		_, _, err := w.Glob(text(0), int(a[1].n))
		return length(err)
	}
	panic(f)
}

func outside(f string, a []argument) (int64, error) {
	switch f {
	case "capability_invoke":
		out, err := guest.Invoke(a[0].text, []byte(a[1].text))
		return int64(len(out)), err
	case "http_fetch":
		var req guest.Request
		if json.Unmarshal([]byte(a[0].text), &req); req.URL == "" {
			return status(rawFetch(a[0].text, a[1].text))
		}
		req.Body = []byte(a[1].text)
		resp, err := guest.Fetch(req)
		if err != nil {
			return 0, err
		}
		return int64(len(resp.Body)), nil
	case "secret_hmac":
		sum, err := guest.HMAC(a[0].text, []byte(a[1].text))
		return int64(len(sum)), err
	case "audit_query":
		var q guest.Query
		if json.Unmarshal([]byte(a[0].text), &q); q == (guest.Query{}) {
			return status(rawQuery(a[0].text))
		}
		_, err := guest.AuditQuery(q)
		return length(err)
	}
	panic(f)
}

func run() int32 {
	input, err := guest.Input()
	if err != nil {
		return 1
	}
	script, silent := strings.CutPrefix(strings.Trim(string(input), `"`), "!")
	version := ""
	var report []string
	for _, step := range strings.Split(script, ";") {
		words := strings.Split(step, " ")
		var args []argument
		for _, w := range words[1:] {
			args = append(args, parse(w, version))
		}
		value, body, err := call(words[0], args)
		var refused guest.Errno
		if errors.As(err, &refused) {
			value = -int64(refused)
		} else if err != nil {
			panic(err)
		}
		if silent {
			continue
		}
		var meta []byte
		if len(args) == 0 || args[0].buffer < 0 {
			body, meta = register(resultRead, 4096), register(resultMeta, 1024)
			var m struct{ Version string }
			_ = json.Unmarshal(meta, &m)
			version = m.Version
		}
		if len(body) >= 4096 {
			body = nil
		}
		report = append(report, fmt.Sprintf("[%d,%q,%q]", value, hex.EncodeToString(body), hex.EncodeToString(meta)))
	}
	if !silent && guest.Output([]byte("["+strings.Join(report, ",")+"]")) != nil {
		return 1
	}
	return 0
}
