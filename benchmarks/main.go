// Command benchmarks measures the hot path beside its peers, in one run, and writes the report.
//
//	go run . -prepare        build the guests (Go is needed; nothing is downloaded that go.mod does not name)
//	go run . [-quick]        measure everything and write results/
//	go run . -soak 10m       mixed load against a gateway, then look at what is left
//	go run . -publish        bring README.md and docs/benchmarks.md to what results/ has
//	go run . -check          fail when they are not
//
// It measures only against servers it starts itself, on loopback. It stops by itself, and on an
// interrupt; either way its servers and files go with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ecotone-dev/ecotone/host/compile"
)

func main() {
	compile.RunIfChild()
	if len(os.Args) > 2 && os.Args[1] == "child" {
		exit(child(os.Args[2], os.Args[3:]))
	}
	var (
		prepare = flag.Bool("prepare", false, "build the guests and end")
		quick   = flag.Bool("quick", false, "a run of less than 50 s; rows that need longer say so")
		soak    = flag.Duration("soak", 0, "instead of measuring, load a gateway for this long")
		guests  = flag.String("guests", "guests/built", "folder of the built guests")
		out     = flag.String("out", "", "folder of the report; \"\" is results of a full run, and results/local of any other")
		only    = flag.String("only", "", "comma-separated sections to run: "+strings.Join(sectionNames(), ","))
		budget  = flag.Duration("budget", fullBudget, "when a full run ends; what is still to do then says so")
		publish = flag.Bool("publish", false, "bring the figures in the documents to the last full run")
		check   = flag.Bool("check", false, "fail when the figures in the documents are not those of the last full run")
	)
	flag.Parse()
	fullBudget = *budget
	if *out == "" {
		*out = "results"
		if *quick || *only != "" {
			*out = "results/local"
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *prepare:
		exit(buildGuests(ctx, *guests))
	case *soak > 0:
		exit(runSoak(ctx, *soak))
	case *publish, *check:
		exit(publishAll("..", *out, *check))
	}
	sections, err := choose(*only)
	if err != nil {
		exit(err)
	}
	exit(run(ctx, sections, *quick, *guests, *out))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// section is a part of the run.
type section struct {
	name  string
	share time.Duration // of a quick run's time: at most
	run   func(context.Context, *bench) error
}

// sections are in the order in which a run that gets late must not lose them.
var sections = []section{
	{"fresh", 18 * time.Second, measureFresh},
	{"http", 14 * time.Second, measureHTTP},
	{"parts", 4 * time.Second, measureParts},
	{"metering", 5 * time.Second, measureMetering},
	{"noisy", 6 * time.Second, measureNoisy},
	{"cold", 6 * time.Second, measureCold},
	{"growth", 8 * time.Second, measureGrowth},
	{"steps", 8 * time.Second, measureSteps}, // the only one without a target
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// choose picks sections by name; "" is all of them.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	var out []section
	for _, name := range strings.Split(only, ",") {
		n := len(out)
		for _, s := range sections {
			if s.name == name {
				out = append(out, s)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("there is no section %q", name)
		}
	}
	return out, nil
}

// errLate ends a section that sees that it has too little time left.
var errLate = errors.New("there is too little time left")
