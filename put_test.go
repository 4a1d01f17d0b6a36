package oda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/suite"
)

// stored returns the metadata of the entity that the tests update.
func stored(t testing.TB) oda.Metadata {
	return oda.Metadata{
		Version: 4, CreatedBy: "mary", CreatedOn: instant(t, "2026-03-01T20:59:58Z"),
		LastModifiedBy: "john", LastModifiedOn: instant(t, "2026-03-02T22:15:00.25Z"),
	}
}

// putOf returns the Put of an SBDefinition x with that metadata.
func putOf(t testing.TB, metadata string) oda.Put {
	t.Helper()
	d := suite.Document(t, oda.SBDefinition, `{"metadata":`+metadata+`}`)
	return oda.Put{
		Ref: oda.Ref{Kind: oda.SBDefinition, ID: "x"}, Expected: d.Metadata, Compare: oda.AllFields,
		Creator: "creator", Modifier: "modifier", At: instant(t, "2026-03-05"),
	}
}

const matching = `{"version":4,"created_by":"mary","created_on":"2026-03-01T20:59:58.000000Z",` +
	`"last_modified_by":"john","last_modified_on":"2026-03-02T22:15:00.250000Z"}`

// edited returns the matching metadata with one text in it replaced.
func edited(t testing.TB, before, after string) string {
	t.Helper()
	if !strings.Contains(matching, before) {
		t.Fatalf("%s is not in the metadata", before)
	}
	return strings.Replace(matching, before, after, 1)
}

func TestAnUpdateMustComeWithTheStoredMetadata(t *testing.T) {
	tests := []struct {
		name, metadata string
		faults         []oda.Fault
	}{
		{"as read", matching, nil},
		{"other members are the caller's", edited(t, `{`, `{"pdm_version":"9",`), nil},
		{"version spelled otherwise", edited(t, `:4,`, `:4.0,`), nil},
		{"user spelled otherwise", edited(t, `"mary"`, `"m\u0061ry"`), nil},
		{"time with +00:00", edited(t, `22:15:00.250000Z`, `22:15:00.25+00:00`), nil},
		{"time with +05:30, the next day", edited(t, `2026-03-01T20:59:58.000000Z`, `2026-03-02T02:29:58+05:30`), nil},
		{"time without zone", edited(t, `22:15:00.250000Z`, `22:15:00.250000`), nil},
		{"time with a space", edited(t, `2026-03-01T20:59:58.000000Z`, `2026-03-01 20:59:58`), nil},
		{"time with more zeros", edited(t, `.250000Z`, `.250000000Z`), nil},

		{"another version", edited(t, `:4,`, `:3,`), []oda.Fault{{Pointer: "/metadata/version", Detail: "is 3, stored is 4"}}},
		{"a version out of all bounds", edited(t, `:4,`, `:1e30,`), []oda.Fault{{Pointer: "/metadata/version", Detail: "is 9223372036854775807, stored is 4"}}},
		{"another creator", edited(t, `"mary"`, `"Mary"`), []oda.Fault{{Pointer: "/metadata/created_by", Detail: `is "Mary", stored is "mary"`}}},
		{"another time of creation", edited(t, `20:59:58.000000Z`, `20:59:59Z`), []oda.Fault{{Pointer: "/metadata/created_on", Detail: "is 2026-03-01T20:59:59Z, stored is 2026-03-01T20:59:58.000000Z"}}},
		{"another modifier", edited(t, `"john"`, `"john "`), []oda.Fault{{Pointer: "/metadata/last_modified_by", Detail: `is "john ", stored is "john"`}}},
		{"a stale time", edited(t, `.250000Z`, `.249999Z`), []oda.Fault{{Pointer: "/metadata/last_modified_on", Detail: "is 2026-03-02T22:15:00.249999Z, stored is 2026-03-02T22:15:00.250000Z"}}},
		{"a time less than a microsecond off", edited(t, `.250000Z`, `.2500001Z`), []oda.Fault{{Pointer: "/metadata/last_modified_on", Detail: "is 2026-03-02T22:15:00.2500001Z, stored is 2026-03-02T22:15:00.250000Z"}}},
		{"a time less than a nanosecond off", edited(t, `.250000Z`, `.25000000000000000001Z`), []oda.Fault{{Pointer: "/metadata/last_modified_on", Detail: "is 2026-03-02T22:15:00.250000001Z, stored is 2026-03-02T22:15:00.250000Z"}}},
		{"the same digits in another zone", edited(t, `.250000Z`, `.250000+05:30`), []oda.Fault{{Pointer: "/metadata/last_modified_on", Detail: "is 2026-03-02T16:45:00.25Z, stored is 2026-03-02T22:15:00.250000Z"}}},

		{"version missing", edited(t, `"version":4,`, ``), []oda.Fault{{Pointer: "/metadata/version", Detail: "is missing, stored is 4"}}},
		{"creator missing", edited(t, `"created_by":"mary",`, ``), []oda.Fault{{Pointer: "/metadata/created_by", Detail: `is missing, stored is "mary"`}}},
		{"time of creation null", edited(t, `"2026-03-01T20:59:58.000000Z"`, `null`), []oda.Fault{{Pointer: "/metadata/created_on", Detail: "is missing, stored is 2026-03-01T20:59:58.000000Z"}}},
		{"modifier null", edited(t, `"john"`, `null`), []oda.Fault{{Pointer: "/metadata/last_modified_by", Detail: `is missing, stored is "john"`}}},
		{"time of modification missing", edited(t, `,"last_modified_on":"2026-03-02T22:15:00.250000Z"`, ``), []oda.Fault{{Pointer: "/metadata/last_modified_on", Detail: "is missing, stored is 2026-03-02T22:15:00.250000Z"}}},
		{"no metadata", `null`, []oda.Fault{
			{Pointer: "/metadata/version", Detail: "is missing, stored is 4"},
			{Pointer: "/metadata/created_by", Detail: `is missing, stored is "mary"`},
			{Pointer: "/metadata/created_on", Detail: "is missing, stored is 2026-03-01T20:59:58.000000Z"},
			{Pointer: "/metadata/last_modified_by", Detail: `is missing, stored is "john"`},
			{Pointer: "/metadata/last_modified_on", Detail: "is missing, stored is 2026-03-02T22:15:00.250000Z"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := stored(t)
			next, err := oda.Judge([]oda.Put{putOf(t, test.metadata)}, []*oda.Metadata{&m})
			if test.faults == nil {
				want := oda.Metadata{
					Version: 5, CreatedBy: "mary", CreatedOn: m.CreatedOn, LastModifiedBy: "modifier", LastModifiedOn: instant(t, "2026-03-05"),
				}
				if err != nil || len(next) != 1 || next[0] != want {
					t.Fatalf("got %+v, %v; want %+v", next, err, want)
				}
				return
			}
			e, _ := errors.AsType[*oda.Error](err)
			if e == nil || e.Code != oda.MetadataMismatch || next != nil {
				t.Fatalf("got %v, %v", next, err)
			}
			if diff := cmp.Diff(test.faults, e.Faults); diff != "" {
				t.Error(diff)
			}
			for _, f := range test.faults {
				if want := strings.TrimPrefix(f.Pointer, "/metadata/") + " " + f.Detail; !strings.Contains(e.Detail, want) {
					t.Errorf("%q does not say that %s", e.Detail, want)
				}
			}
			for _, want := range []string{"SBDefinition x", "Nothing was stored", "Read the entity, apply your change"} {
				if !strings.Contains(e.Detail, want) {
					t.Errorf("%q does not say %q", e.Detail, want)
				}
			}
		})
	}
}

// A request for several entities may have only one. Its faults have longer
// pointers, but the detail must still name the field.
func TestASingleEntityInARequestForSeveralIsReportedInFull(t *testing.T) {
	m := stored(t)
	put := putOf(t, edited(t, `:4,`, `:3,`))
	put.Pointer = "/sbds/0"
	_, err := oda.Judge([]oda.Put{put}, []*oda.Metadata{&m})
	if err == nil || !strings.Contains(err.Error(), "current version of SBDefinition x: version is 3, stored is 4.") {
		t.Errorf("got %v", err)
	}
}

func TestConditionsAreCheckedBeforeTheMetadata(t *testing.T) {
	m := stored(t)
	tag := m.Tag()
	if tag != "4-1772489700250000" {
		t.Fatalf("the tag is %s", tag)
	}
	anything := &oda.Tags{Any: true}
	tags := func(list ...string) *oda.Tags { return &oda.Tags{List: list} }
	tests := []struct {
		name      string
		condition oda.Condition
		stored    *oda.Metadata
		says      string // empty: it holds
	}{
		{"no condition", oda.Condition{}, &m, ""},
		{"no condition, new", oda.Condition{}, nil, ""},
		{"If-Match with the tag", oda.Condition{Match: tags("1-1", tag)}, &m, ""},
		{"If-Match with another tag", oda.Condition{Match: tags("3-1772489700250000")}, &m, `now has the entity tag "` + tag + `"`},
		{"If-Match with no tag at all", oda.Condition{Match: tags()}, &m, "If-Match failed"},
		{"If-Match *", oda.Condition{Match: anything}, &m, ""},
		{"If-Match *, new", oda.Condition{Match: anything}, nil, "there is no SBDefinition x"},
		{"If-Match with a tag, new", oda.Condition{Match: tags(tag)}, nil, "there is no SBDefinition x"},
		{"If-None-Match *", oda.Condition{NoneMatch: anything}, &m, "SBDefinition x exists"},
		{"If-None-Match *, new", oda.Condition{NoneMatch: anything}, nil, ""},
		{"If-None-Match with the tag", oda.Condition{NoneMatch: tags(tag)}, &m, "If-None-Match failed"},
		{"If-None-Match with another tag", oda.Condition{NoneMatch: tags("1-1")}, &m, ""},
		{"both, only the first holds", oda.Condition{Match: tags(tag), NoneMatch: tags(tag)}, &m, "If-None-Match failed"},
		{"both, only the second holds", oda.Condition{Match: tags("1-1"), NoneMatch: tags("1-1")}, &m, "If-Match failed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.condition.Holds(test.stored) != (test.says == "") {
				t.Error("Holds disagrees")
			}
			good, bad := putOf(t, matching), putOf(t, `{}`)
			good.Condition, bad.Condition = test.condition, test.condition
			_, err := oda.Judge([]oda.Put{good}, []*oda.Metadata{test.stored})
			if test.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if oda.CodeOf(err) != oda.Precondition || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, which does not say %q", err, test.says)
			}
			if _, err := oda.Judge([]oda.Put{bad}, []*oda.Metadata{test.stored}); oda.CodeOf(err) != oda.Precondition {
				t.Errorf("the metadata was compared first: %v", err)
			}
		})
	}
}
