package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// in is the input of a file tool.
type in = map[string]any

// use is one call of a file tool and how it ends: with one of the tool's own codes, or well.
type use struct {
	tool string
	in   in
	code string
	want in // members that the output must have
}

// tools are the file tools of one session.
type tools struct {
	*testing.T
	s *servertest.Session
}

func (f tools) call(u use) in {
	f.Helper()
	r := f.s.Invoke("ws:file."+u.tool+"@1", u.in)
	if u.code != "" {
		var p struct{ Guest struct{ Code string } }
		if r.Refused(abi.CodeGuestError).JSON(&p); p.Guest.Code != u.code {
			f.Errorf("%s %v: %s, want %s", u.tool, u.in, p.Guest.Code, u.code)
		}
		return nil
	}
	if r.Status != 200 {
		f.Errorf("%s %v: %s", u.tool, u.in, r.Body)
		return nil
	}
	var out in
	r.JSON(&out)
	for k, v := range u.want {
		if fmt.Sprint(out[k]) != fmt.Sprint(v) {
			f.Errorf("%s %v: %s is %v, want %v", u.tool, u.in, k, out[k], v)
		}
	}
	return out
}

// withTools uploads the file tools and lets user:alice use them in project.
func withTools(t *testing.T, g *servertest.Gateway) {
	t.Helper()
	module, err := build.Biome(context.Background(), "workspace")
	if err != nil {
		t.Fatal(err)
	}
	g.Upload(module).Want(201)
	g.Install("workspace", []string{"project"}, nil).Want(200)
	for _, tool := range []string{"read", "list", "write", "edit", "copy", "move", "remove", "grep", "glob"} {
		g.Grant("user:alice", "ws:file."+tool+"@1", "project")
	}
}

func (f tools) in(g *servertest.Gateway) string {
	return filepath.Join(g.Dir, "workspaces", f.s.Workspace)
}

// The file tools end to end, in one session after the other, and over a restart.
func TestFiles(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	withTools(t, g)
	session := func(t *testing.T) tools {
		return tools{t, g.Open("user:alice", "project", map[string]any{"files": true})}
	}
	text := func(path, text string) in { return in{"path": path, "text": text} }
	edit := func(path, from, to string) in { return in{"path": path, "old": from, "new": to} }

	t.Run("rules", func(t *testing.T) {
		f := session(t)
		for _, u := range []use{
			{"write", text("a", "one\n"), "", in{"bytes": 4}}, // M3: a new file needs no read
			{"write", text("a", "two\n"), "", nil},            // M8: the session wrote this version
			{"read", in{"path": "a"}, "", in{"text": "     1\ttwo\n", "truncated": false}},
			{"write", in{"path": "a", "text": "x", "create": true}, "FILE_EXISTS", nil}, // M5
			{"copy", in{"from": "a", "to": "b"}, "", nil},                               // M13: no read, none recorded
			{"write", text("b", "x"), "READ_REQUIRED", nil},                             // M3
			{"edit", edit("b", "two", "x"), "READ_REQUIRED", nil},
			{"read", in{"path": "./b/../b"}, "", nil}, // M11
			{"write", text("./b", "aa aa"), "", nil},
			{"write", in{"path": "b", "text": "x", "version": "0000000000000000"}, "VERSION_MISMATCH", nil}, // M4
			{"edit", edit("b", "zz", "x"), "EDIT_NO_MATCH", nil},                                            // M6
			{"edit", edit("b", "aa", "x"), "EDIT_AMBIGUOUS", nil},
			{"edit", edit("b", "aa", "aa"), "EDIT_IDENTICAL", nil},
			{"edit", edit("b", "", "x"), "EDIT_EMPTY", nil},
			{"edit", in{"path": "b", "old": "aa", "new": "bb", "all": true}, "", in{"count": 2}},
			{"edit", edit("b", "bb ", "c"), "", in{"count": 1}}, // M8: without another read
			{"read", in{"path": "b"}, "", in{"text": "     1\tcbb"}},
			{"write", text("d/e/f", "deep"), "", nil},
			{"remove", in{"path": "d"}, "DIRECTORY_NOT_EMPTY", nil}, // M12
			{"read", in{"path": "d/e/f"}, "", in{"size": 4}},
			{"copy", in{"from": "d", "to": "dd"}, "NOT_REGULAR", nil}, // M13
			{"copy", in{"from": "a", "to": "b"}, "FILE_EXISTS", nil},
			{"move", in{"from": "a", "to": "b"}, "FILE_EXISTS", nil}, // M14
			{"read", in{"path": "b"}, "", in{"text": "     1\tcbb"}},
			{"move", in{"from": "a", "to": "g/h"}, "", nil},
			{"read", in{"path": "a"}, "FILE_NOT_FOUND", nil},
			{"read", in{"path": "g/h"}, "", in{"text": "     1\ttwo\n"}},
			{"grep", in{"pattern": "tw[o]"}, "", in{"more": false, "matches": []any{in{"path": "g/h", "line": 1, "text": "two"}}}}, // M2
			{"glob", in{"glob": "**/f"}, "", in{"paths": []any{"d/e/f"}}},
			{"list", in{}, "", in{"more": false}},
			{"remove", in{"path": "d/e/f"}, "", nil},
			{"remove", in{"path": "d/e"}, "", nil},
			{"remove", in{"path": "nothing"}, "FILE_NOT_FOUND", nil},
			{"read", in{"path": "/etc/passwd"}, "PATH_INVALID", nil}, // M1
			{"read", in{"path": "../x"}, "PATH_INVALID", nil},
			{"write", text("a\x00b", "x"), "PATH_INVALID", nil},
		} {
			f.T = t
			f.call(u)
		}
	})

	// M5: of many creators at once exactly one succeeds.
	t.Run("creators", func(t *testing.T) {
		f := session(t)
		won, lost := 0, 0
		for _, r := range together(20, func(i int) servertest.Response {
			return f.s.Invoke("ws:file.write@1", in{"path": "p", "text": fmt.Sprint(i), "create": true})
		}) {
			if r.Status == 200 {
				won++
			} else if strings.Contains(string(r.Body), "FILE_EXISTS") {
				lost++
			}
		}
		if won != 1 || lost != 19 {
			t.Errorf("%d won, %d lost", won, lost)
		}
	})

	// M4, M7: a change and a removal behind the session's back are told apart, and nothing is
	// written over them.
	t.Run("behind its back", func(t *testing.T) {
		f := session(t)
		for _, name := range []string{"changed", "gone"} {
			f.call(use{"write", text(name, "one"), "", nil})
		}
		if err := os.WriteFile(filepath.Join(f.in(g), "changed"), []byte("somebody's"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(f.in(g), "gone")); err != nil {
			t.Fatal(err)
		}
		f.call(use{"edit", edit("gone", "one", "two"), "DELETED_SINCE_READ", nil})
		f.call(use{"edit", edit("changed", "one", "two"), "VERSION_MISMATCH", nil})
		f.call(use{"write", text("changed", "two"), "VERSION_MISMATCH", nil})
		if got, _ := os.ReadFile(filepath.Join(f.in(g), "changed")); string(got) != "somebody's" {
			t.Errorf("it holds %q", got)
		}
	})

	// M16: a large file pages without gaps, each page bounded and marked.
	t.Run("pages", func(t *testing.T) {
		f := session(t)
		var lines []string
		for i := range 12_000 {
			lines = append(lines, fmt.Sprintf("line %d %s", i, strings.Repeat("x", i%20)))
		}
		f.call(use{"write", text("big", strings.Join(lines, "\n")+"\n"), "", nil})
		var got []string
		last := ""
		next := in{"path": "big"}
		for next != nil {
			out := f.call(use{"read", next, "", nil})
			page, _ := out["text"].(string)
			if len(page) > 25_000 || page == "" {
				t.Fatalf("a page of %d bytes", len(page))
			}
			numbered := slices.Collect(strings.Lines(page))
			if out["truncated"] == true {
				marker := numbered[len(numbered)-1]
				if numbered = numbered[:len(numbered)-1]; !strings.HasPrefix(marker, "[truncated: ") {
					t.Fatalf("no marker but %q", marker)
				}
			}
			for _, line := range numbered {
				number, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				if number == last { // the page before was cut inside this line
					got[len(got)-1] += text
					continue
				}
				got, last = append(got, text), number
			}
			at, _ := out["next"].(map[string]any)
			if next = nil; at != nil {
				next = in{"path": "big", "offset": at["offset"], "column": at["column"]}
			}
		}
		if !slices.Equal(got, lines) {
			t.Errorf("%d lines came of %d", len(got), len(lines))
		}
	})

	// M15, PF-C1, PF-C3: links planted from outside are not followed by any tool.
	t.Run("links", func(t *testing.T) {
		f := session(t)
		f.call(use{"write", text("plain", "plain"), "", nil})
		outside := t.TempDir()
		secret := filepath.Join(outside, "secret")
		if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]string{"file": secret, "dir": outside, "up": "../..", "root": "/"} {
			if err := os.Symlink(to, filepath.Join(f.in(g), name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, u := range []use{
			{tool: "read", in: in{"path": "file"}},
			{tool: "read", in: in{"path": "dir/secret"}},
			{tool: "read", in: in{"path": "root/etc/passwd"}},
			{tool: "write", in: text("file", "x")},
			{tool: "write", in: text("dir/new", "x")},
			{tool: "edit", in: edit("file", "canary", "x")},
			{tool: "copy", in: in{"from": "file", "to": "copied"}},
			{tool: "copy", in: in{"from": "plain", "to": "dir/copied"}},
			{tool: "move", in: in{"from": "dir/secret", "to": "moved"}},
			{tool: "move", in: in{"from": "plain", "to": "up/moved"}},
			{tool: "remove", in: in{"path": "dir/secret"}},
			{tool: "list", in: in{"path": "dir"}},
			{tool: "list", in: in{"path": "up"}},
		} {
			if r := f.s.Invoke("ws:file."+u.tool+"@1", u.in).Refused(abi.CodeGuestError); strings.Contains(string(r.Body), "canary") {
				t.Errorf("%s %v: %s", u.tool, u.in, r.Body)
			}
		}
		searches := []use{{tool: "grep", in: in{"pattern": "canary"}}, {tool: "glob", in: in{"glob": "**/secret"}}}
		for _, u := range searches {
			if r := f.s.Invoke("ws:file."+u.tool+"@1", u.in); strings.Contains(string(r.Body), "canary") || strings.Contains(string(r.Body), "secret\"") {
				t.Errorf("%s found %s", u.tool, r.Body)
			}
		}
		if got, _ := os.ReadFile(secret); string(got) != "canary" || len(filesBelow(t, outside)) != 1 {
			t.Errorf("outside is now %q, %v", got, filesBelow(t, outside))
		}
	})

	// M9: the ledger lives as long as the process; the files stay.
	t.Run("restart", func(t *testing.T) {
		f := session(t)
		f.call(use{"write", text("kept", "before"), "", nil})
		g.Stop()
		again := servertest.Start(t, servertest.In(g.Dir))
		f = tools{t, &servertest.Session{G: again, ID: f.s.ID, Token: f.s.Token, Workspace: f.s.Workspace}}
		f.call(use{"write", text("kept", "after"), "READ_REQUIRED", nil})
		f.call(use{"read", in{"path": "kept"}, "", in{"text": "     1\tbefore"}})
		f.call(use{"write", text("kept", "after"), "", nil})
	})
}

// X49: three file calls and a fetch are four lines under one row, and the external one an
// announced and closed effect.
func TestFileEffectsUnderTheRow(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("ok")) }))
	defer origin.Close()
	allowOrigin(g, origin.URL)
	m := w.Manifest("effects")
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	admitAll(t, g, scripted(m, scripts{"run": {{"file_create", "a", "x"}, {"file_read", "a", 0, 10}, {"file_remove", "a"}, fetching(origin.URL + "/x")}}),
		"project", map[string]any{"endpoints": []string{"origin"}})
	r := g.Open("user:alice", "project", map[string]any{"files": true}).Invoke("test:effects.run@1", in{})
	if got := errnosOf(r); !slices.Equal(got, make([]abi.Errno, 4)) {
		t.Fatalf("%v", got)
	}
	var row struct {
		StartedAt string
		Effects   []struct{ Function, Target, Outcome string }
		Ended     struct {
			Lines []struct{ Function, Target, Code string }
		}
	}
	raw, _ := json.Marshal(g.Row(r.Header.Get("Ecotone-Invocation")))
	if err := json.Unmarshal(raw, &row); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range row.Ended.Lines {
		lines = append(lines, strings.TrimSpace(l.Function+" "+l.Target+" "+l.Code))
	}
	if !slices.Equal(lines, []string{"file_create a", "file_read a", "file_remove a", "http_fetch " + origin.URL + "/x"}) {
		t.Errorf("lines %q", lines)
	}
	if len(row.Effects) != 1 || row.Effects[0].Function != "http_fetch" || row.Effects[0].Outcome != "done" || row.StartedAt == "" {
		t.Errorf("effects %+v, started %s", row.Effects, row.StartedAt)
	}
}
