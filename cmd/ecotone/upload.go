package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// refusedModule prints why an upload was refused before the refusal itself is reported.
func refusedModule(e *Env, err error) error {
	var no *denied
	if !asDenied(err, &no) || e.json {
		return err
	}
	var doc struct {
		Problems []struct {
			Code    string `json:"code"`
			Offset  int    `json:"offset"`
			Section string `json:"section"`
			Pointer string `json:"pointer"`
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"problems"`
	}
	if json.Unmarshal(no.raw, &doc) == nil {
		for _, p := range doc.Problems {
			where := fmt.Sprintf("byte %d", p.Offset)
			if p.Section != "" {
				where += " (" + p.Section + ")"
			}
			if p.Pointer != "" {
				where = p.Pointer
			}
			fmt.Fprintf(e.stderr, "%s at %s: %s\n", p.Code, where, p.Message)
			hint(e, p.Hint)
		}
	}
	return err
}

func uploadText(w io.Writer, body []byte) error {
	var out struct {
		Biome struct {
			Name, Digest, Stage string
		} `json:"biome"`
		Report struct {
			Size  int    `json:"size"`
			Reach string `json:"reach"`
		} `json:"report"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	_, err := fmt.Fprintf(w, "%s %s: %s, %d bytes, reach %s\n", out.Biome.Name, out.Biome.Digest, out.Biome.Stage, out.Report.Size, out.Report.Reach)
	return err
}
