package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
)

// Every byte outside the values that the server owns comes back as it was sent.
func TestDocumentsComeBackAsSent(t *testing.T) {
	a := env.Start(t)
	const by = `"version":1,"created_by":"u","created_on":"T","last_modified_by":"u","last_modified_on":"T"`
	tests := []struct{ name, sent, kept string }{
		{"nothing but braces", `{}`, `{"sbd_id":"ID","metadata":{` + by + `}}`},
		{"white space stays", " {\n\t\"a\" : 1\r\n}\n", ` {"sbd_id":"ID",` + "\n\t\"a\" : 1" + `,"metadata":{` + by + "}\r\n}\n"},
		{"order and unknown members", `{"z":1,"a":{"y":null,"b":[]}}`, `{"sbd_id":"ID","z":1,"a":{"y":null,"b":[]},"metadata":{` + by + `}}`},
		{
			"numbers keep their spelling", `{"n":[0.35e9,1E+2,-0,1.10,123456789012345678901234567890.123]}`,
			`{"sbd_id":"ID","n":[0.35e9,1E+2,-0,1.10,123456789012345678901234567890.123],"metadata":{` + by + `}}`,
		},
		{
			"escapes keep their spelling", `{"s":"\u0041\/\u00e9é\ud83d\ude00<&>\u2028"}`,
			`{"sbd_id":"ID","s":"\u0041\/\u00e9é\ud83d\ude00<&>\u2028","metadata":{` + by + `}}`,
		},
		{"an identifier that is there stays in its place", `{"a":1, "sbd_id" : "ID"}`, `{"a":1, "sbd_id" : "ID","metadata":{` + by + `}}`},
		{"an identifier of null is filled in", `{"a":1,"sbd_id":null}`, `{"a":1,"sbd_id":"ID","metadata":{` + by + `}}`},
		{"metadata of null is filled in", `{"metadata":null,"a":1}`, `{"sbd_id":"ID","metadata":{` + by + `},"a":1}`},
		{"other members of metadata are the caller's", `{"metadata":{"pdm_version":"9.0.1"}}`, `{"sbd_id":"ID","metadata":{"pdm_version":"9.0.1",` + by + `}}`},
		{
			"managed fields are replaced in their place", `{"metadata":{"last_modified_on":null, "x":1, "version":7}}`,
			`{"sbd_id":"ID","metadata":{"last_modified_on":"T", "x":1, "version":1,"created_by":"u","created_on":"T","last_modified_by":"u"}}`,
		},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id := fmt.Sprintf("sbd-%d", i)
			put := want(t, 200, a.Do("PUT", "/sbds/"+id, strings.ReplaceAll(test.sent, "ID", id), "X-Forwarded-User", "u"))
			m := metadataOf(t, put.Body)
			kept := strings.NewReplacer("ID", id, `"T"`, `"`+m.CreatedOn+`"`).Replace(test.kept)
			if diff := cmp.Diff(kept, put.Text()); diff != "" {
				t.Errorf("the answer is not what was sent (-want +got):\n%s", diff)
			}
			get := a.Do("GET", "/sbds/"+id, "")
			if get.Text() != put.Text() || get.Header.Get("ETag") != put.Header.Get("ETag") {
				t.Errorf("GET answers %s %s, PUT answered %s %s", get.Header.Get("ETag"), get.Body, put.Header.Get("ETag"), put.Body)
			}
			again := want(t, 200, a.Do("PUT", "/sbds/"+id, get.Text(), "X-Forwarded-User", "u"))
			m2 := metadataOf(t, again.Body)
			kept = strings.NewReplacer(`"version":1`, `"version":2`, `"last_modified_on":"`+m.LastModifiedOn, `"last_modified_on":"`+m2.LastModifiedOn).Replace(get.Text())
			if again.Text() != kept {
				t.Errorf("a second version changes more than the metadata:\n%s\n%s", kept, again.Body)
			}
		})
	}
}

// These tests store the documents of the test data, of every kind and age, and
// real ones where they are available.
func TestOwnDocumentsComeBackAsSent(t *testing.T) { comeBack(t, env.OwnDocuments(t)) }

func TestRealDocumentsComeBackAsSent(t *testing.T) { comeBack(t, env.RealDocuments(t)) }

func comeBack(t *testing.T, documents []env.Document) {
	a := env.Start(t)
	for i, d := range documents {
		t.Run(d.Name, func(t *testing.T) {
			path := fmt.Sprintf("/%s/fixture-%d", d.Kind.Collection(), i)
			r := a.Do("PUT", path, string(d.Text))
			if r.Status == 422 { // it has an identifier of its own
				p := refused(t, r, 422, oda.IdentifierMismatch)
				if !slices.Contains(p.pointers(), "/"+d.Kind.IDField()) {
					t.Fatalf("the fault is at %v", p.pointers())
				}
				path = "/" + d.Kind.Collection() + "/" + member(t, d.Text, d.Kind.IDField())
				r = a.Do("PUT", path, string(d.Text))
				if r.Status == 422 {
					refused(t, r, 422, oda.MetadataMismatch)
					t.Skip("another document has this identifier")
				}
			}
			want(t, 200, r)
			if get := want(t, 200, a.Do("GET", path, "")); get.Text() != r.Text() {
				t.Error("GET does not answer what PUT answered")
			}
			want(t, 200, a.Do("PUT", path, r.Text()))
		})
	}
}

// Times that differ only in spelling are equal.
func TestAnUpdateMaySpellTheStoredTimesInAnyWay(t *testing.T) {
	a := env.Start(t)
	m := store(t, a, "/sbds/a", `{}`)
	for _, spelling := range []string{
		"2006-01-02T15:04:05.000000Z", "2006-01-02T15:04:05.000000", "2006-01-02 15:04:05.000000",
		"2006-01-02T15:04:05.000000000Z", "2006-01-02T15:04:05.000000+00:00", "2006-01-02t15:04:05.000000z",
	} {
		t.Run(spelling, func(t *testing.T) {
			sent := m
			sent.LastModifiedOn = m.modifiedOn(t).Format(spelling)
			m = store(t, a, "/sbds/a", `{"metadata":`+sent.text()+`}`)
		})
	}
	for _, zone := range []string{"+05:30", "-11:00"} {
		t.Run(zone, func(t *testing.T) {
			sent := m
			hours, minutes := 5, 30
			if zone[0] == '-' {
				hours, minutes = -11, 0
			}
			at := m.modifiedOn(t).Add(ofClock(hours, minutes))
			sent.LastModifiedOn = at.Format("2006-01-02T15:04:05.000000") + zone
			m = store(t, a, "/sbds/a", `{"metadata":`+sent.text()+`}`)
		})
	}
	if m.Version != 9 {
		t.Errorf("after eight updates the version is %d", m.Version)
	}
}

// The problem says what differs, what is stored, and what to do.
func TestUpdateWithOtherMetadataIsRefused(t *testing.T) {
	a := env.Start(t)
	stored := store(t, a, "/sbds/a", `{"n":1}`, "X-Forwarded-User", "anna")
	full := stored.text()
	tests := []struct {
		name, metadata string
		pointers       []string
	}{
		{"no metadata", ``, []string{"version", "created_by", "created_on", "last_modified_by", "last_modified_on"}},
		{"null metadata", `null`, []string{"version", "created_by", "created_on", "last_modified_by", "last_modified_on"}},
		{"empty metadata", `{}`, []string{"version", "created_by", "created_on", "last_modified_by", "last_modified_on"}},
		{"another version", strings.Replace(full, `"version":1`, `"version":2`, 1), []string{"version"}},
		{"a version beyond all numbers", strings.Replace(full, `"version":1`, `"version":1e400`, 1), []string{"version"}},
		{"null version", strings.Replace(full, `"version":1`, `"version":null`, 1), []string{"version"}},
		{"missing version", strings.Replace(full, `"version":1,`, ``, 1), []string{"version"}},
		{"another creator", strings.Replace(full, `"created_by":"anna"`, `"created_by":"Anna"`, 1), []string{"created_by"}},
		{"another modifier", strings.Replace(full, `"last_modified_by":"anna"`, `"last_modified_by":"bob"`, 1), []string{"last_modified_by"}},
		{"another time of creation", strings.Replace(full, `"created_on":"2`, `"created_on":"1`, 1), []string{"created_on"}},
		{"a date instead of the time", strings.Replace(full, `"last_modified_on":"`+stored.LastModifiedOn, `"last_modified_on":"`+stored.LastModifiedOn[:10], 1), []string{"last_modified_on"}},
		{"a nanosecond later", strings.Replace(full, `"last_modified_on":"`+stored.LastModifiedOn, `"last_modified_on":"`+stored.LastModifiedOn[:26]+"001Z", 1), []string{"last_modified_on"}},
		{"null time", strings.Replace(full, `"last_modified_on":"`+stored.LastModifiedOn+`"`, `"last_modified_on":null`, 1), []string{"last_modified_on"}},
		{"two at once", strings.NewReplacer(`"version":1`, `"version":3`, `"created_by":"anna"`, `"created_by":"bob"`).Replace(full), []string{"version", "created_by"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := `{"n":2}`
			if test.metadata != "" {
				body = `{"n":2,"metadata":` + test.metadata + `}`
			}
			unchanged(t, a, func() {
				p := refused(t, a.Do("PUT", "/sbds/a", body), 422, oda.MetadataMismatch, "Read", "store", "stored is")
				var pointers []string
				for _, name := range test.pointers {
					pointers = append(pointers, "/metadata/"+name)
				}
				if diff := cmp.Diff(pointers, p.pointers()); diff != "" {
					t.Errorf("the faults (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The form of metadata is always checked, even on a first store and a creation.
func TestMetadataOfWrongForm(t *testing.T) {
	a := env.Start(t)
	stored := store(t, a, "/sbds/a", `{}`)
	for _, test := range []struct{ name, metadata, pointer string }{
		{"a text", `"x"`, "/metadata"},
		{"a list", `[]`, "/metadata"},
		{"a number", `1`, "/metadata"},
		{"a version that is a text", `{"version":"1"}`, "/metadata/version"},
		{"version 0", `{"version":0}`, "/metadata/version"},
		{"a negative version", `{"version":-1}`, "/metadata/version"},
		{"a broken version", `{"version":1.5}`, "/metadata/version"},
		{"a version of true", `{"version":true}`, "/metadata/version"},
		{"a user that is a number", `{"created_by":5}`, "/metadata/created_by"},
		{"an empty user", `{"created_by":""}`, "/metadata/created_by"},
		{"a user with a line break", `{"last_modified_by":"a\nb"}`, "/metadata/last_modified_by"},
		{"a user that is too long", `{"created_by":"` + strings.Repeat("é", 257) + `"}`, "/metadata/created_by"},
		{"a time that is a number", `{"created_on":20260301}`, "/metadata/created_on"},
		{"a time that cannot be read", `{"created_on":"yesterday"}`, "/metadata/created_on"},
		{"a day that does not exist", `{"last_modified_on":"2026-02-30T00:00:00Z"}`, "/metadata/last_modified_on"},
		{"an hour that does not exist", `{"last_modified_on":"2026-02-03T25:00:00Z"}`, "/metadata/last_modified_on"},
		{"an empty time", `{"created_on":""}`, "/metadata/created_on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := `{"metadata":` + test.metadata + `}`
			unchanged(t, a, func() {
				for name, r := range map[string]*env.Reply{
					"first store": a.Do("PUT", "/sbds/new", body),
					"update":      a.Do("PUT", "/sbds/a", body),
					"creation":    a.Do("POST", "/sbds", body),
					"empty block": a.Do("POST", "/ebs/create", body),
				} {
					p := refused(t, r, 400, oda.InvalidRequest, test.pointer)
					if got := p.pointers(); len(got) != 1 || got[0] != test.pointer {
						t.Errorf("%s: the faults are at %v", name, got)
					}
				}
				p := refused(t, a.Do("PUT", "/", `{"sbds":[{"sbd_id":"b"},{"sbd_id":"c","metadata":`+test.metadata+`}]}`), 400, oda.InvalidRequest)
				if got := p.pointers(); len(got) != 1 || got[0] != "/sbds/1"+test.pointer {
					t.Errorf("several: the faults are at %v", got)
				}
			})
		})
	}
	if stored.Version != 1 {
		t.Errorf("a first store makes version %d", stored.Version)
	}
}

// Every accepted PUT makes a version with a later time, even if nothing differs.
func TestVersionsCount(t *testing.T) {
	a := env.Start(t)
	first := store(t, a, "/prjs/p", `{"a":1}`, "X-Forwarded-User", "anna")
	if first.CreatedOn != first.LastModifiedOn || first.LastModifiedBy != "anna" {
		t.Errorf("a first store makes %+v", first)
	}
	before := first
	for version := int64(2); version <= 20; version++ {
		after := store(t, a, "/prjs/p", `{"a":1,"metadata":`+before.text()+`}`, "X-Forwarded-User", "bob")
		switch {
		case after.Version != version:
			t.Fatalf("the version is %d, want %d", after.Version, version)
		case after.CreatedBy != "anna", after.CreatedOn != first.CreatedOn, after.LastModifiedBy != "bob":
			t.Fatalf("version %d has %+v", version, after)
		case !after.modifiedOn(t).After(before.modifiedOn(t)):
			t.Fatalf("last_modified_on did not grow: %s, then %s", before.LastModifiedOn, after.LastModifiedOn)
		}
		before = after
	}
}

// A reference to another entity must have the right type, but the entity need not
// exist.
func TestReferences(t *testing.T) {
	a := env.Start(t)
	for _, test := range []struct {
		path, body, pointer string
	}{
		{"/sbis/r", `{"sbd_ref":"dangling","sbd_version":99,"eb_ref":null,"sbd_id":"sbd-old"}`, ""},
		{"/ebs/r", `{"sbi_ref":"dangling","sbd_ref":null,"sbd_version":null}`, ""},
		{"/sbds/r", `{"prj_ref":"dangling","ob_ref":null}`, ""},
		{"/prjs/r", `{"obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["dangling"]},{}],"obs_programmes":null}`, ""},
		{"/sbis/w", `{"sbd_ref":1}`, "/sbd_ref"},
		{"/sbis/w", `{"sbd_version":"1"}`, "/sbd_version"},
		{"/ebs/w", `{"sbi_ref":{}}`, "/sbi_ref"},
		{"/sbds/w", `{"prj_ref":[]}`, "/prj_ref"},
		{"/prjs/w", `{"obs_blocks":{}}`, "/obs_blocks"},
		{"/prjs/w", `{"obs_programmes":[{"sbd_ids":[1]}]}`, "/obs_programmes/0/sbd_ids/0"},
	} {
		r := a.Do("PUT", test.path, test.body)
		if test.pointer == "" {
			want(t, 200, r)
			continue
		}
		if p := refused(t, r, 400, oda.InvalidRequest); !slices.Equal(p.pointers(), []string{test.pointer}) {
			t.Errorf("%s: the faults are at %v, want %s", test.body, p.pointers(), test.pointer)
		}
	}
}
