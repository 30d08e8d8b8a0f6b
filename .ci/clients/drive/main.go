//go:build generated

// Command drive does the main job with the generated clients: upload, install, grant, open a session,
// list, invoke, be refused, and find it all in the audit.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"

	"github.com/ecotone-dev/ecotone/clients/gen/control"
	"github.com/ecotone-dev/ecotone/clients/gen/data"
)

type job struct {
	Biome, Environment, Subject string
	Granted                     []string
	Put, Get                    json.RawMessage
	Refused                     string
}

func main() {
	log.SetFlags(0)
	if err := drive(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("done")
}

// want is what every step ends in: the status that the document promises, or why not.
func want(step string, err error, got, status int, body []byte) error {
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	if got != status {
		return fmt.Errorf("%s: %d: %s", step, got, body)
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

func drive(ctx context.Context) error {
	raw, err := os.ReadFile(os.Getenv("ECOTONE_JOB"))
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	module, err := os.ReadFile(os.Getenv("ECOTONE_MODULE"))
	if err != nil {
		return err
	}
	operator, err := control.NewClientWithResponses(os.Getenv("ECOTONE_ADMIN"), control.WithRequestEditorFn(bearer(os.Getenv("ECOTONE_TOKEN"))))
	if err != nil {
		return err
	}

	up, err := operator.UploadBiomeWithBodyWithResponse(ctx, nil, "application/wasm", bytes.NewReader(module))
	if err := want("upload", err, up.StatusCode(), http.StatusCreated, up.Body); err != nil {
		return err
	}
	if up.JSON201.Biome.Name != j.Biome {
		return fmt.Errorf("uploaded %q", up.JSON201.Biome.Name)
	}
	in, err := operator.PutInstallWithResponse(ctx, j.Biome, &control.PutInstallParams{IfNoneMatch: ptr("*")},
		control.InstallRequest{Digest: up.JSON201.Biome.Digest, Environments: []string{j.Environment}})
	if err := want("install", err, in.StatusCode(), http.StatusOK, in.Body); err != nil {
		return err
	}
	for _, ref := range j.Granted {
		g, err := operator.CreateGrantWithResponse(ctx, nil, control.GrantRequest{Subject: j.Subject, Capability: ref, Environment: j.Environment})
		if err := want("grant", err, g.StatusCode(), http.StatusCreated, g.Body); err != nil {
			return err
		}
	}
	s, err := operator.OpenSessionWithResponse(ctx, nil, control.SessionRequest{Subject: j.Subject, Environment: ptr(j.Environment)})
	if err := want("session", err, s.StatusCode(), http.StatusCreated, s.Body); err != nil {
		return err
	}

	caller, err := data.NewClientWithResponses(os.Getenv("ECOTONE_INVOKE"), data.WithRequestEditorFn(bearer(s.JSON201.Token)))
	if err != nil {
		return err
	}
	all, err := caller.ListCapabilitiesWithResponse(ctx)
	if err := want("list", err, all.StatusCode(), http.StatusOK, all.Body); err != nil {
		return err
	}
	var refs []string
	for _, c := range all.JSON200.Items {
		refs = append(refs, c.Ref)
	}
	slices.Sort(refs)
	granted := slices.Sorted(slices.Values(j.Granted))
	if !slices.Equal(refs, granted) {
		return fmt.Errorf("may invoke %q, was granted %q", refs, granted)
	}
	put, err := caller.InvokeWithBodyWithResponse(ctx, j.Granted[0], nil, "application/json", bytes.NewReader(j.Put))
	if err := want("put", err, put.StatusCode(), http.StatusOK, put.Body); err != nil {
		return err
	}
	get, err := caller.InvokeWithBodyWithResponse(ctx, j.Granted[1], nil, "application/json", bytes.NewReader(j.Get))
	if err := want("get", err, get.StatusCode(), http.StatusOK, get.Body); err != nil {
		return err
	}
	var was, is struct{ Text string }
	if json.Unmarshal(j.Put, &was) != nil || json.Unmarshal(get.Body, &is) != nil || is.Text == "" || is.Text != was.Text {
		return fmt.Errorf("put %s, got %s", j.Put, get.Body)
	}
	no, err := caller.InvokeWithBodyWithResponse(ctx, j.Refused, nil, "application/json", bytes.NewReader([]byte("{}")))
	if err := want("refusal", err, no.StatusCode(), http.StatusForbidden, no.Body); err != nil {
		return err
	}
	refused := no.ApplicationproblemJSON4XX
	if refused == nil || refused.Code == "" || refused.AuditId == nil {
		return fmt.Errorf("a refusal that says nothing: %s", no.Body)
	}
	row, err := operator.GetAuditWithResponse(ctx, get.HTTPResponse.Header.Get("Ecotone-Invocation"), nil)
	if err := want("audit", err, row.StatusCode(), http.StatusOK, row.Body); err != nil {
		return err
	}
	fmt.Printf("%s was refused with %s; %s is in the audit\n", j.Refused, refused.Code, row.JSON200.AuditId)
	return nil
}

func bearer(token string) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}
