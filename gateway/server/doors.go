package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/listen"
)

// The doors, in the order in which they are opened.
const (
	doorData = iota
	doorAdmin
	doorOps
	doorMCP // optional: it may be nil
	numDoors
)

// certificatesEvery is how often the certificate's files are looked at.
const certificatesEvery = 10 * time.Second

// bind takes the addresses first: a second server must fail before it touches the data.
func (s *Server) bind() error {
	o := listen.Options{OnlyLoopback: s.o.Dev}
	if s.o.TLSCert != "" || s.o.TLSKey != "" {
		certs, err := listen.Load(s.o.TLSCert, s.o.TLSKey, s.o.TLSOldest)
		if err != nil {
			return err
		}
		s.certs, o.Certificates = certs, certs
		watched, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			certs.Watch(watched, certificatesEvery, s.o.Log)
		}()
		s.closing(func() error { stop(); <-ended; return nil })
	}
	for i, door := range [numDoors]struct{ name, address string }{
		doorData: {"data", s.o.Listen}, doorAdmin: {"admin", s.o.AdminListen}, doorOps: {"ops", s.o.OpsListen},
		doorMCP: {"mcp", s.o.MCPListen},
	} {
		if i == doorMCP && door.address == "" {
			continue
		}
		ln, err := listen.Open(door.name, door.address, o)
		if err != nil {
			return err
		}
		s.doors[i] = ln
		s.closing(ln.Close)
	}
	return nil
}

// Reload reads again what may change while the server runs: the certificate. What is not good stays as it was.
func (s *Server) Reload() error {
	if s.certs == nil {
		return nil
	}
	_, err := s.certs.Reload()
	return err
}

func (s *Server) addresses() []netip.AddrPort {
	var out []netip.AddrPort
	for _, ln := range s.doors {
		if ln == nil {
			continue
		}
		if a, ok := ln.AddrPort(); ok {
			out = append(out, a)
		}
	}
	return out
}

// Addresses returns where the data plane, the control plane and the ops listener are.
func (s *Server) Addresses() (invoke, admin, ops string) {
	return s.doors[doorData].Addr().String(), s.doors[doorAdmin].Addr().String(), s.doors[doorOps].Addr().String()
}
