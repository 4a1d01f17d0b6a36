package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/test/must"
)

func TestVersionsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	ctx := t.Context()
	d := must.Get(c.Store(ctx, oda.ExecutionBlock, "eb-1", []byte(`{"request_responses":[]}`)))(t)
	const versions = oda.MaxVersions + 5
	for range versions - 1 {
		d = must.Get(c.Store(ctx, oda.ExecutionBlock, "eb-1", d.Body))(t)
	}
	must.Get(c.Record(ctx, "eb-1", []byte(`{"request":"a"}`), ""))(t)
	told := collect(t, c.Versions(ctx, oda.ExecutionBlock, "eb-1"))
	equal(t, "the number of versions", len(told), versions)
	for i, v := range told {
		if v.Metadata.Version != int64(versions-i) || !v.Listed || v.Records > 0 != (i == 0) {
			t.Fatalf("at %d there is %+v", i, v)
		}
	}
	for range c.Versions(ctx, oda.ExecutionBlock, "eb-1") { // a caller may stop early
		break
	}
	for _, err := range c.Versions(ctx, oda.ExecutionBlock, "eb-2") {
		refused(t, err, oda.NotFound, 404)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	c := start(t)
	ctx := t.Context()
	d := must.Get(c.Store(ctx, oda.SBDefinition, "sbd-1", []byte(`{"name":"M51"}`)))(t)
	_, err := c.Diff(ctx, oda.SBDefinition, "sbd-1", 0, 0)
	refused(t, err, oda.InvalidQuery, 400)
	for _, name := range []string{"M101", "M81"} {
		body := bytes.Replace(d.Body, []byte("M"), []byte(name+" M"), 1)
		d = must.Get(c.Store(ctx, oda.SBDefinition, "sbd-1", body))(t)
	}
	for versions, want := range map[[2]int64]string{{}: "M81 M101 M51", {1}: "M81 M101 M51", {0, 2}: "M101 M51", {3, 1}: "M51", {1, 2}: "M101 M51"} {
		patch := must.Get(c.Diff(ctx, oda.SBDefinition, "sbd-1", versions[0], versions[1]))(t)
		if !strings.Contains(string(patch), `{"op":"replace","path":"/name","value":"`+want+`"}`) {
			t.Errorf("%v: %s", versions, patch)
		}
		text := must.Get(c.DiffText(ctx, oda.SBDefinition, "sbd-1", versions[0], versions[1]))(t)
		if !strings.Contains(text, `+  "name": "`+want+`",`) {
			t.Errorf("%v: %s", versions, text)
		}
	}
	_, err = c.Diff(ctx, oda.SBDefinition, "sbd-1", 1, 9)
	refused(t, err, oda.NotFound, 404)
}

func ExampleClient_Versions() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"versions":[{"version":2,"created_by":"mary","created_on":"2026-03-01T20:59:58.000000Z",
			"last_modified_by":"john","last_modified_on":"2026-03-02T08:15:00.250000Z","bytes":531},{"version":1,"created_by":"mary",
			"created_on":"2026-03-01T20:59:58.000000Z","last_modified_by":"mary","last_modified_on":"2026-03-01T20:59:58.000000Z","bytes":512}]}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Who changed this SBDefinition, and when?
	for v, err := range archive.Versions(bg, oda.SBDefinition, "sbd-1k5v3r8m0q") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("version", v.Metadata.Version, "by", v.Metadata.LastModifiedBy, "on", v.Metadata.LastModifiedOn)
	}
	// Output:
	// version 2 by john on 2026-03-02T08:15:00.250000Z
	// version 1 by mary on 2026-03-01T20:59:58.000000Z
}

func ExampleClient_DiffText() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "--- sbds/sbd-1k5v3r8m0q/versions/1\t2026-03-01T20:59:58.000000Z\n"+
			"+++ sbds/sbd-1k5v3r8m0q/versions/2\t2026-03-02T08:15:00.250000Z\n@@ -2,3 +2,3 @@\n   \"sbd_id\": \"sbd-1k5v3r8m0q\",\n"+
			"-  \"name\": \"M51\",\n+  \"name\": \"M101\",\n   \"metadata\": {}\n")
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	// What did the last change change?
	text, err := archive.DiffText(bg, oda.SBDefinition, "sbd-1k5v3r8m0q", 0, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "+ ") {
			fmt.Print(line)
		}
	}
	// Output: +  "name": "M101",
}

func ExampleClient_AsOf() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"sbd_id":"sbd-1k5v3r8m0q","name":"M51","metadata":{"version":1,"created_by":"mary",
			"created_on":"2026-03-01T20:59:58.000000Z","last_modified_by":"mary","last_modified_on":"2026-03-01T20:59:58.000000Z"}}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	// What was planned when the night began?
	then := time.Date(2026, 3, 1, 21, 0, 0, 0, time.UTC)
	sbd, err := archive.AsOf(bg, oda.SBDefinition, "sbd-1k5v3r8m0q", then)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("version", sbd.Metadata.Version)
	// Output: version 1
}
