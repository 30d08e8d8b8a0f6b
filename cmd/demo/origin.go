package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
)

// origin is a local service that wants a bearer token.
type origin struct {
	secret string
	url    string
	seen   atomic.Int64 // requests that carried the secret
	all    atomic.Int64

	waiting chan struct{} // a request for /slow has come
}

// ServeHTTP answers an order to whoever presents the secret.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.all.Add(1)
	if r.URL.Path == "/slow" { // never answered
		o.waiting <- struct{}{}
		<-r.Context().Done()
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+o.secret {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	o.seen.Add(1)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, `{"order":4711,"state":"shipped"}`)
}

func (d *demo) startOrigin(secret string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.origin = &origin{secret: secret, url: "http://" + ln.Addr().String(), waiting: make(chan struct{}, 1)}
	d.http = &http.Server{Handler: d.origin}
	go func() { _ = d.http.Serve(ln) }()
	return nil
}
