// Command cmd builds the first-party biomes and writes them to a folder:
//
//	go run ./biomes/build/cmd -o bin/biomes
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/ecotone-dev/ecotone/biomes/build"
)

func main() {
	out := flag.String("o", "bin/biomes", "the folder to write to")
	cache := flag.String("cache", "", "the folder results are kept in; empty is the user's cache folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := (&build.Builder{Cache: *cache}).Write(ctx, *out, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
