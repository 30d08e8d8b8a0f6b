package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// ManCmd prints the manual page.
type ManCmd struct{}

// Run prints it in man's own form, made from the commands there are.
func (*ManCmd) Run(e *Env, ctx *kong.Context) error {
	_, err := e.stdout.Write(manPage(ctx.Model))
	return err
}

// roff escapes text for a line of its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "“", `"`, "”", `"`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func manPage(app *kong.Application) []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say(`.TH ECOTONE 1`)
	say(".SH NAME\necotone \\- %s", roff("run untrusted WebAssembly capabilities under the ceilings of their environment"))
	say(".SH SYNOPSIS\n.B ecotone\n.I noun verb\n[flags]")
	say(".SH DESCRIPTION\n%s", roff(app.Help))
	say(".PP\n%s", roff("serve runs the gateway; every other command is a client of a running one, or works on files alone."))
	say(".SH OPTIONS OF EVERY COMMAND")
	manFlags(&b, app.Flags)
	say(".SH COMMANDS")
	for _, leaf := range app.Leaves(true) {
		say(".SS %s", roff(strings.TrimPrefix(leaf.Summary(), "ecotone ")))
		say("%s", roff(leaf.Help))
		manFlags(&b, leaf.Flags)
	}
	say(".SH SETTINGS\n%s", roff("Each flag of serve is a key of the file that --config names, too, and the variable that is ECOTONE_ and the key in capitals. A flag goes before a variable, a variable before the file."))
	say(".SH SIGNALS\n.TP\nSIGTERM, SIGINT\n%s\n.TP\nSIGHUP\n%s", roff("Drain, then end; a second one ends at once."), roff("Read settings and certificates again."))
	say(".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nFailed.\n.TP\n2\nThe command line or the configuration is wrong.\n.TP\n3\nDenied.\n.TP\n4\nIt waits for an approval.")
	return b.Bytes()
}

func manFlags(b *bytes.Buffer, all []*kong.Flag) {
	for _, f := range all {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(b, "%s\n", roff("Variable: "+strings.Join(f.Envs, ", ")+"."))
		}
	}
}
