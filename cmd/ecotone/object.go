package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

func (e *Env) encode(v any) error { return json.NewEncoder(e.stdout).Encode(v) }

// remove deletes under the version the server shows.
func (e *Env) remove(path string) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, path+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	header := http.Header{"If-Match": {res.header.Get("ETag")}}
	_, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodDelete, path+e.orgQuery(), header, nil)
	return err
}

// token prints an object whose token is shown once, or saves the token and prints the object. The
// file is made first: a token that could not be kept would be one that nobody has.
func (e *Env) token(path string, in any, save string) (err error) {
	if save == "" {
		return e.send(http.MethodPost, path, in)
	}
	file, err := newTokenFile(save)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	res, err := e.conn.admin(e.ctx, http.MethodPost, path+e.orgQuery(), in)
	if err != nil {
		return err
	}
	var out struct {
		Token string          `json:"token"`
		Of    json.RawMessage `json:"of"`
	}
	if err := json.Unmarshal(res.body, &out); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	if err := file.keep(out.Token); err != nil {
		return fmt.Errorf("the token could not be saved, and is not shown again: %w", err)
	}
	return e.show(out.Of, nil)
}
