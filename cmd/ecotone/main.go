// Command ecotone is the gateway and its command line: `serve` runs the server, every
// other verb is a client of a running one or works on files alone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ecotone-dev/ecotone/host/compile"
)

func main() {
	// The compile child is this very binary, started with bytes on its standard input. It
	// must be recognised before anything else reads the arguments.
	compile.RunIfChild()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal does not wait: it ends the process as it would any other
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
