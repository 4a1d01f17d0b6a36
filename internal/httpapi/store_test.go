package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

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
