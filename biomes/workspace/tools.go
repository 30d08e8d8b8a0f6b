package main

import (
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/guest"
)

const (
	maxMatchText   = 500 // shown of a matching line, in bytes
	defaultMatches = 200
)

type listIn struct {
	Path  string `json:"path"`
	After string `json:"after"`
	Limit int    `json:"limit"`
}

type listOut struct {
	Entries []guest.Entry `json:"entries"`
	More    bool          `json:"more"`
}

func doList(in listIn) (listOut, error) {
	if in.Path == "" {
		in.Path = "."
	}
	entries, more, err := guest.Files.List(in.Path, in.After, in.Limit)
	return listOut{filled(entries), more}, err
}

type writeIn struct {
	Path    string `json:"path"`
	Text    string `json:"text"`
	Create  bool   `json:"create"`  // the file must not exist
	Version string `json:"version"` // replace exactly this version
}

type writeOut struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Bytes   int    `json:"bytes"`
}

func doWrite(in writeIn) (writeOut, error) {
	var version string
	var err error
	switch data := []byte(in.Text); {
	case in.Create && in.Version != "":
		return writeOut{}, guest.Failf("ARGUMENT_INVALID", "create and version exclude each other")
	case in.Create:
		version, err = guest.Files.Create(in.Path, data)
	case in.Version != "":
		version, err = guest.Files.Replace(in.Path, in.Version, data)
	default:
		version, err = guest.Files.Write(in.Path, data)
	}
	return writeOut{in.Path, version, len(in.Text)}, err
}

type editIn struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

type editOut struct {
	Path    string `json:"path"`
	Count   int    `json:"count"`
	Version string `json:"version"`
}

func doEdit(in editIn) (editOut, error) {
	done, err := guest.Files.Edit(in.Path, in.Old, in.New, in.All)
	return editOut{in.Path, done.Count, done.Version}, err
}

type pair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func doCopy(in pair) (pair, error) { return in, guest.Files.Copy(in.From, in.To) }

func doMove(in pair) (pair, error) { return in, guest.Files.Move(in.From, in.To) }

type onePath struct {
	Path string `json:"path"`
}

func doRemove(in onePath) (onePath, error) { return in, guest.Files.Remove(in.Path) }

type grepIn struct {
	Pattern string `json:"pattern"`
	Glob    string `json:"glob"`
	Limit   int    `json:"limit"`
}

type grepOut struct {
	Matches []guest.Match `json:"matches"`
	More    bool          `json:"more"`
}

func doGrep(in grepIn) (grepOut, error) {
	if in.Glob == "" {
		in.Glob = "**"
	}
	if in.Limit == 0 {
		in.Limit = defaultMatches
	}
	matches, more, err := guest.Files.Grep(in.Pattern, in.Glob, in.Limit)
	for i := range matches {
		matches[i].Text = short(matches[i].Text)
	}
	return grepOut{filled(matches), more}, err
}

// short cuts a line that is too long to show and says so.
func short(s string) string {
	if len(s) <= maxMatchText {
		return s
	}
	n := maxMatchText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

type globIn struct {
	Glob  string `json:"glob"`
	Limit int    `json:"limit"`
}

type globOut struct {
	Paths []string `json:"paths"`
	More  bool     `json:"more"`
}

func doGlob(in globIn) (globOut, error) {
	paths, more, err := guest.Files.Glob(in.Glob, in.Limit)
	return globOut{filled(paths), more}, err
}

// filled makes an empty list [] in JSON, not null.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
