package main

import (
	"errors"
	"strings"

	"github.com/ecotone-dev/ecotone/guest"
)

// prefix begins every key of a note, so that the biome can keep other things later.
const prefix = "note/"

// maxID bounds an id, in bytes.
const maxID = 128

type id struct {
	ID string `json:"id"`
}

type note struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func doPut(in note) (id, error) {
	if err := check(in.ID); err != nil {
		return id{}, err
	}
	return id{in.ID}, guest.KV.Put(prefix+in.ID, []byte(in.Text))
}

func doGet(in id) (note, error) {
	if err := check(in.ID); err != nil {
		return note{}, err
	}
	text, err := guest.KV.Get(prefix + in.ID)
	return note{in.ID, string(text)}, missing(err)
}

func doDelete(in id) (id, error) {
	if err := check(in.ID); err != nil {
		return id{}, err
	}
	return in, missing(guest.KV.Delete(prefix + in.ID))
}

type listIn struct {
	Prefix string `json:"prefix"`
	After  string `json:"after"`
	Limit  int    `json:"limit"`
}

type listOut struct {
	IDs  []string `json:"ids"`
	More bool     `json:"more"`
}

func doList(in listIn) (listOut, error) {
	after := ""
	if in.After != "" {
		after = prefix + in.After
	}
	keys, more, err := guest.KV.List(prefix+in.Prefix, after, in.Limit)
	out := listOut{IDs: make([]string, 0, len(keys)), More: more}
	for _, k := range keys {
		out.IDs = append(out.IDs, strings.TrimPrefix(k, prefix))
	}
	return out, err
}

// check holds an id to what the manifest's schema says, also where no schema was checked.
func check(id string) error {
	if id == "" || len(id) > maxID || id[0] == '.' {
		return guest.Failf("ID_INVALID", "an id has 1 to %d bytes and does not begin with a dot", maxID)
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return guest.Failf("ID_INVALID", "an id is made of letters, digits and . _ -")
		}
	}
	return nil
}

func missing(err error) error {
	if errors.Is(err, guest.ENOENT) {
		return guest.Failf("NOTE_NOT_FOUND", "there is no such note, or this invocation may not see it: %w", err)
	}
	return err
}
