package app_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/sample"
	"oda/night"
	"oda/summary"
)

// sampleAnswers checks that a sample archive still answers what it did when it was made.
// The last line changes the archive.
var sampleAnswers = []struct {
	name  string
	check func(t *testing.T, a *env.Archive, old *sample.Archive)
}{
	{"every document is what it was", documentsAreTheSame},
	{"records and lists are what they were", answersAreTheSame},
	{"versions and instants of the past are known", pastIsKnown},
	{"searches find some of it by every filter", searchesFind},
	{"references are followed", provenanceIsKnown},
	{"a request with a known key is answered again", keysAreKnown},
	{"the references of every document are known", referencesAreKnown},
	{"searches find all of it", searchesFindIt},
	{"every call is in its night", callsAreInTheirNights},
	{"every change is followed from the beginning", changesAreFollowed},
	{"writing goes on", writingGoesOn},
}

func documentsAreTheSame(t *testing.T, a *env.Archive, old *sample.Archive) {
	for _, s := range old.Current() {
		reply := a.Do("GET", s.Path, "")
		if reply.Status != 200 || reply.Text() != s.Text || reply.Header.Get("ETag") != s.Tag {
			t.Errorf("%s with the tag %s is answered %d with the tag %s (- as it was, + as it is):\n%s",
				s.Path, s.Tag, reply.Status, reply.Header.Get("ETag"), cmp.Diff(s.Text, reply.Text()))
		}
	}
}

func answersAreTheSame(t *testing.T, a *env.Archive, old *sample.Archive) {
	for _, before := range old.Answers {
		if reply := a.Do(before.Method, before.Path, before.Body); reply.Status != 200 || reply.Text() != before.Text {
			t.Errorf("%s %s is answered %d (- as it was, + as it is):\n%s", before.Method, before.Path, reply.Status, cmp.Diff(before.Text, reply.Text()))
		}
	}
}

func keysAreKnown(t *testing.T, a *env.Archive, old *sample.Archive) {
	for _, before := range old.Keyed {
		headers := []string{"X-Forwarded-User", before.User}
		if before.Key != "" {
			headers = append(headers, "Idempotency-Key", before.Key)
		}
		if reply := a.Do(before.Method, before.Path, before.Body, headers...); reply.Status != 200 || reply.Text() != before.Text {
			t.Errorf("%s %s with the key %q is answered %d (- as it was, + as it is):\n%s",
				before.Method, before.Path, before.Key, reply.Status, cmp.Diff(before.Text, reply.Text()))
		}
		other := `{"request": "another"}`
		if strings.HasSuffix(before.Path, "/status") {
			other = `{"status": "another"}`
		}
		if before.Key != "" {
			if reply := a.Do(before.Method, before.Path, other, headers...); reply.Status != 422 {
				t.Errorf("%s %s with the key %q and another body is answered %d: %s", before.Method, before.Path, before.Key, reply.Status, reply.Text())
			}
		}
	}
	documentsAreTheSame(t, a, old) // nothing was stored
}

func referencesAreKnown(t *testing.T, a *env.Archive, old *sample.Archive) {
	known := 0
	for _, s := range old.Current() {
		collection, id, _ := strings.Cut(strings.TrimPrefix(s.Path, "/"), "/")
		kind, _ := oda.KindOf(collection)
		x := must.Get(summary.OfBody(kind, oda.Body{Text: []byte(s.Text)}))(t)
		want := map[string]bool{}
		for _, r := range x.Summary().References {
			want[r.Field] = true
		}
		var answer struct {
			Nodes []struct{ Kind, ID, Name string }
			Edges []struct {
				From  struct{ Kind, ID string }
				Field string
			}
		}
		must.Do(t, json.Unmarshal([]byte(a.Do("GET", s.Path+"/provenance", "").Text()), &answer))
		got := map[string]bool{}
		for _, e := range answer.Edges {
			if e.From.Kind == collection && e.From.ID == id {
				got[e.Field] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("references of %s (- in the document, + known):\n%s", s.Path, diff)
		}
		if answer.Nodes[0].Name != x.Summary().Name {
			t.Errorf("%s is named %q", s.Path, answer.Nodes[0].Name)
		}
		known += len(got)
	}
	if known == 0 {
		t.Error("the archive has no references")
	}
}

// searchesFindIt asks for each document by its identifier, its telescope, what
// it refers to and its text, and wants it byte for byte.
func searchesFindIt(t *testing.T, a *env.Archive, old *sample.Archive) {
	asked := map[string]int{}
	for _, s := range old.Current() {
		_, collection, _ := strings.Cut(s.Path, "/")
		collection, id, _ := strings.Cut(collection, "/")
		var document map[string]any
		if err := json.Unmarshal([]byte(s.Text), &document); err != nil {
			continue // a number that is too large for this reader
		}
		filters := map[string]string{"q": id, "where": `/` + collection[:len(collection)-1] + `_id = "` + id + `"`}
		for name, field := range map[string]string{"telescope": "telescope", "ref": "sbd_ref"} {
			if text, ok := document[field].(string); ok && text != "" && collection != "prjs" && (name != "ref" || collection != "sbds") {
				filters[name] = text
			}
		}
		for name, value := range filters {
			asked[name]++
			query := url.Values{name: {value}, "fields": {"document"}, "limit": {"1000"}}
			for found := false; !found; { // a slow search gives its pages one after the other
				reply := a.Do("GET", "/"+collection+"/search?"+query.Encode(), "")
				var page struct{ Next *string }
				must.Do(t, json.Unmarshal(reply.Body, &page))
				if found = reply.Status == 200 && strings.Contains(reply.Text(), s.Text); !found && page.Next == nil {
					t.Errorf("%s is not found by %s=%s: %d %.300s", s.Path, name, value, reply.Status, reply.Text())
					break
				} else if !found {
					query.Set("cursor", *page.Next)
				}
			}
		}
	}
	for _, name := range []string{"q", "where", "telescope", "ref"} {
		if asked[name] == 0 {
			t.Errorf("nothing was searched by %s", name)
		}
	}
}

func callsAreInTheirNights(t *testing.T, a *env.Archive, old *sample.Archive) {
	nights := map[string]int64{}
	for _, s := range old.Current() {
		if !strings.HasPrefix(s.Path, "/ebs/") {
			continue
		}
		var page struct {
			Records []struct {
				RecordedAt string `json:"recorded_at"`
				Record     struct {
					Sent     string `json:"request_sent_at"`
					Received string `json:"response_received_at"`
				} `json:"record"`
			} `json:"records"`
		}
		must.Do(t, json.Unmarshal(a.Do("GET", s.Path+"/request_responses?limit=5000", "").Body, &page))
		for _, r := range page.Records {
			text := r.RecordedAt
			if r.Record.Received != "" {
				text = r.Record.Received
			}
			if r.Record.Sent != "" {
				text = r.Record.Sent
			}
			at := must.Get(oda.ParseTime(text))(t)
			nights[at.UTC().Add(-12*time.Hour).Format("2006-01-02")]++
		}
	}
	if len(nights) == 0 {
		t.Error("the archive has no calls")
	}
	for date, calls := range nights {
		var night night.Report
		must.Do(t, json.Unmarshal(a.Do("GET", "/night?date="+date, "").Body, &night))
		if night.Calls != calls {
			t.Errorf("the night of %s has %d calls, want %d", date, night.Calls, calls)
		}
	}
}

// changesAreFollowed follows the log of changes from position 0. Every version, every
// record and every status is in it once, in the order of the writes.
func changesAreFollowed(t *testing.T, a *env.Archive, old *sample.Archive) {
	last := make(map[string]string) // entity tag of the last state of each
	for _, s := range old.States {
		last[s.Path] = strings.Trim(s.Tag, `"`)
	}
	type change struct {
		Kind, ID, Change string
		Position         int64
		Version          int64
		First            int64 `json:"first_sequence"`
		Last             int64 `json:"last_sequence"`
		Sequence         int64 // of a status
		By, On           string
	}
	var page struct {
		Changes []change
		Next    int64
	}
	followed, version, sequence, said := make(map[string]string), make(map[string]int64), make(map[string]int64), make(map[string]int64)
	position, on := int64(0), ""
	for {
		page.Changes = nil
		reply := a.Do("GET", fmt.Sprintf("/changes?limit=7&after=%d", page.Next), "")
		if err := json.Unmarshal(reply.Body, &page); err != nil || reply.Status != 200 {
			t.Fatalf("answered %d: %s", reply.Status, reply.Text())
		}
		if len(page.Changes) == 0 {
			break
		}
		for _, c := range page.Changes {
			path := "/" + c.Kind + "/" + c.ID
			if c.Position <= position || c.On < on {
				t.Errorf("%+v comes behind position %d, of %s", c, position, on)
			}
			switch {
			case c.Change == "stored" && c.Version != version[path]+1, c.Change == "recorded" && c.Version != version[path]:
				t.Errorf("%+v comes behind version %d", c, version[path])
			case c.Change == "recorded" && c.First <= sequence[path]:
				t.Errorf("%+v comes behind record %d", c, sequence[path])
			case c.Change == "status" && (c.Sequence != said[path]+1 || c.Version > version[path]):
				t.Errorf("%+v comes behind status %d and version %d", c, said[path], version[path])
			}
			position, on = c.Position, c.On
			if c.Change == "status" {
				said[path]++
				continue
			}
			at := must.Get(time.Parse(time.RFC3339Nano, c.On))(t)
			followed[path] = oda.Metadata{Version: c.Version, LastModifiedOn: oda.InstantOf(at)}.Tag()
			version[path], sequence[path] = c.Version, max(sequence[path], c.Last)
		}
	}
	for path, want := range last {
		if followed[path] != want {
			t.Errorf("%s was followed to %s, but is %s", path, followed[path], want)
		}
	}
	if said["/ebs/eb-m51"] != 4 || said["/sbds/sbd-m51"] != 2 {
		t.Errorf("the statuses that were followed are %v", said)
	}
	if len(followed) != len(last) {
		t.Errorf("%d entities were followed, of %d", len(followed), len(last))
	}
}

func writingGoesOn(t *testing.T, a *env.Archive, old *sample.Archive) {
	for _, s := range old.Current() {
		if strings.HasPrefix(s.Path, "/ebs/") {
			a.Must("POST", s.Path+"/request_response", `{"request": "after the move"}`)
		}
		text := a.Do("GET", s.Path, "").Text()
		stored := a.Must("PUT", s.Path, text)
		if reply := a.Do("GET", s.Path, ""); reply.Text() != stored.Text() {
			t.Errorf("%s is not read as it was stored (- stored, + read):\n%s", s.Path, cmp.Diff(stored.Text(), reply.Text()))
		}
	}
}
