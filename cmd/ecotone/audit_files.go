package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// AuditVerifyCmd verifies.
type AuditVerifyCmd struct {
	Dir    string `arg:"" optional:"" help:"The log: DIR/audit of a data directory, or a copy of it." type:"existingdir"`
	Export string `help:"An export, instead of a log; - is standard input." placeholder:"FILE"`
	Head   string `help:"A signed head that was kept elsewhere: the log must still contain what it covered, an export be made against it." type:"existingfile"`
	Key    string `help:"A verifier key that was kept elsewhere; by default key.pub beside the log, or the export's own." type:"existingfile"`
}

// Run checks the files and changes nothing. The exit code is 1 when something does not verify.
func (c *AuditVerifyCmd) Run(e *Env) error {
	if (c.Dir == "") == (c.Export == "") {
		return usagef("give the folder of a log, or --export with a file")
	}
	var o audit.VerifyOptions
	if c.Head != "" {
		head, err := os.ReadFile(c.Head)
		if err != nil {
			return err
		}
		o.Head = head
	}
	if c.Key != "" {
		key, err := os.ReadFile(c.Key)
		if err != nil {
			return err
		}
		o.Key = strings.TrimSpace(string(key))
	}
	if c.Export != "" {
		return c.export(e, o)
	}
	report, err := audit.Verify(c.Dir, o)
	if err != nil {
		return err
	}
	if e.json {
		if err := e.encode(report); err != nil {
			return err
		}
	} else if report.OK {
		fmt.Fprintf(e.stdout, "ok: %d entries, %d heads, root %s\n", report.Size, report.Heads, report.Root)
		if report.Unsigned > 0 || report.Tail > 0 {
			fmt.Fprintf(e.stdout, "not signed yet: %d entries, and %d bytes that are none; only a running log or a crash leaves them\n", report.Unsigned, report.Tail)
		}
	} else {
		p := report.Problem
		fmt.Fprintf(e.stdout, "NOT OK: %s (file %s, byte %d, entry %d)\n", p.What, p.File, p.Offset, p.Index)
	}
	if !report.OK {
		return errQuiet(exitFailed)
	}
	return nil
}

// export checks an export as Run does a log.
func (c *AuditVerifyCmd) export(e *Env, o audit.VerifyOptions) error {
	in := e.stdin
	if c.Export != "-" {
		f, err := os.Open(c.Export)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	report, err := audit.VerifyExport(in, o)
	if err != nil {
		return err
	}
	switch {
	case e.json:
		err = e.encode(report)
	case report.OK:
		_, err = fmt.Fprintf(e.stdout, "ok: %d entries of %s in a log of %d, %d of them in the clear\n", report.Entries, report.Org, report.Size, report.Opened)
	default:
		_, err = fmt.Fprintf(e.stdout, "NOT OK: %s (line %d)\n", report.Problem, report.Line)
	}
	if err == nil && !report.OK {
		return errQuiet(exitFailed)
	}
	return err
}

// AuditExportCmd exports.
type AuditExportCmd struct {
	Dir  string `arg:"" help:"The data directory, or a copy of it; it may be in use." type:"existingdir"`
	File string `short:"o" help:"A new file; by default standard output." placeholder:"FILE"`
}

// Run reads files and asks no server: whoever can, has the organisation's key, or gets no body.
func (c *AuditExportCmd) Run(e *Env) error {
	out := e.stdout
	if p, ok := out.(*plainWriter); ok { // what is printed is for a program, byte for byte
		out = p.to
	}
	if c.File != "" {
		f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	buffered := bufio.NewWriter(out)
	n, err := audit.Export(c.Dir, e.conn.Org, buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stderr, "%d entries\n", n)
	return err
}
