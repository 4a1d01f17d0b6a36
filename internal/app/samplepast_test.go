package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/sample"
)

// What a sample archive answers of the past, and to searches and reports.

// metadataIn reads the version of a document and its last modification.
func metadataIn(t *testing.T, text string) (version int64, modified string) {
	t.Helper()
	// Not into a struct: a document may have keys that differ in case only.
	var d map[string]json.RawMessage
	var m map[string]any
	must.Do(t, json.Unmarshal([]byte(text), &d))
	must.Do(t, json.Unmarshal(d["metadata"], &m))
	return int64(m["version"].(float64)), m["last_modified_on"].(string)
}

// pastIsKnown asks for every state that the archive ever had: by its instant, and,
// if it was the last one of a version, by the version.
func pastIsKnown(t *testing.T, a *env.Archive, old *sample.Archive) {
	last := make(map[string]string) // by path and version
	for _, s := range old.States {
		version, modified := metadataIn(t, s.Text)
		last[fmt.Sprintf("%s/versions/%d", s.Path, version)] = s.Text
		if reply := a.Do("GET", s.Path+"?at="+modified, ""); reply.Status != 200 || reply.Text() != s.Text {
			t.Errorf("%s as of %s is answered %d (- as it was, + as it is):\n%s", s.Path, modified, reply.Status, cmp.Diff(s.Text, reply.Text()))
		}
	}
	for path, text := range last {
		if path == "/ebs/eb-long/versions/1" {
			continue // most of its states were not read
		}
		if reply := a.Do("GET", path, ""); reply.Status != 200 || reply.Text() != text {
			t.Errorf("%s is answered %d (- as it was, + as it is):\n%s", path, reply.Status, cmp.Diff(text, reply.Text()))
		}
	}
	var list struct{ Versions []struct{ Version int64 } }
	if err := json.Unmarshal(a.Do("GET", "/sbds/sbd-m51/versions", "").Body, &list); err != nil || len(list.Versions) != 6 || list.Versions[0].Version != 6 {
		t.Errorf("the versions are %+v, %v", list, err)
	}
	if diff := a.Do("GET", "/sbds/sbd-m51/diff?from=1&to=2", "").Text(); !strings.Contains(diff, `"M51 at 1.6 GHz"`) || strings.Contains(diff, "targets") {
		t.Errorf("the first two versions differ by %s", diff)
	}
}

// searchesFind finds what the archive held by words, references, telescopes,
// places in the sky and conditions.
func searchesFind(t *testing.T, a *env.Archive, _ *sample.Archive) {
	for query, want := range map[string][]string{
		"/sbds/search?fields=id&q=whirlpool%20comp":                  {"sbd-m51"},
		"/sbds/search?fields=id&q=magellanic":                        {"sbd-lmc"},
		"/prjs/search?fields=id&q=spirals":                           {"prj-family"},
		"/sbds/search?fields=id&cone=210.8,54.35,0.1":                {"sbd-m101"},
		"/sbds/search?fields=id&cone=0,0,0.1":                        {"sbd-lmc"},
		"/sbds/search?fields=id&cone=200,-90,0.5":                    {"sbd-lmc"},
		"/ebs/search?fields=id&ref=sbi-m51&telescope=ska_mid":        {"eb-m51"},
		"/sbis/search?fields=id&ref=sbd-m51&ref_version=3":           {"sbi-m51"},
		"/sbis/search?fields=id&ref=sbd-that-never-was":              {"sbi-dangling"},
		"/ebs/search?fields=id&where=/note%20=%20%22kept%20twice%22": {"eb-m51"},
		"/sbds/search?fields=id&user=Ada&sort=id&q=m101":             {"sbd-m101"},
	} {
		var found struct{ Items []string }
		reply := a.Do("GET", query, "")
		if err := json.Unmarshal(reply.Body, &found); err != nil {
			t.Errorf("%s is answered %d: %s", query, reply.Status, reply.Text())
			continue
		}
		for _, id := range want {
			if !slices.Contains(found.Items, id) {
				t.Errorf("%s finds %v, and not %s", query, found.Items, id)
			}
		}
		if len(found.Items) > 3 {
			t.Errorf("%s finds %d entities", query, len(found.Items))
		}
	}
}

// provenanceIsKnown follows the references of what the archive held.
func provenanceIsKnown(t *testing.T, a *env.Archive, _ *sample.Archive) {
	text := a.Do("GET", "/ebs/eb-m51/provenance", "").Text()
	for _, id := range []string{"sbi-m51", "sbd-m51", "prj-family", "prj-older", "sbd-m101", "sbd-that-never-was"} {
		if !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("the provenance of eb-m51 does not lead to %s: %s", id, text)
		}
	}
}
