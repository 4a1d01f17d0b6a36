package oda_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

func instant(t testing.TB, text string) oda.Instant {
	t.Helper()
	at := must.Get(oda.ParseTime(text))(t)
	return oda.InstantOf(at)
}

func TestReceivedMetadataSaysWhichFieldsWereSent(t *testing.T) {
	tests := map[string]struct {
		has     oda.Fields
		version int64
	}{
		`{}`:                              {0, 0},
		`{"metadata":null}`:               {0, 0},
		`{"metadata":{}}`:                 {0, 0},
		`{"metadata":{"version":null}}`:   {0, 0},
		`{"metadata":{"version":7}}`:      {oda.FieldVersion, 7},
		`{"metadata":{"version":7.0}}`:    {oda.FieldVersion, 7},
		`{"metadata":{"version":70e-1}}`:  {oda.FieldVersion, 7},
		`{"metadata":{"version":1e99}}`:   {oda.FieldVersion, 1<<63 - 1},
		`{"metadata":{"version":1e999}}`:  {oda.FieldVersion, 1<<63 - 1},
		`{"metadata":{"created_by":"a"}}`: {oda.FieldCreatedBy, 0},
		`{"metadata":{"created_on":"2026-01-01","last_modified_on":null}}`:                                                             {oda.FieldCreatedOn, 0},
		`{"metadata":{"last_modified_on":"2026-01-01 10:00","last_modified_by":"b"}}`:                                                  {oda.FieldLastModifiedOn | oda.FieldLastModifiedBy, 0},
		`{"a":{"metadata":{"version":7}},"x":{"version":8}}`:                                                                           {0, 0},
		`{"metadata":{"version":2,"created_by":"a","created_on":"2026-01-01","last_modified_by":"a","last_modified_on":"2026-01-01"}}`: {oda.AllFields, 2},
	}
	for text, want := range tests {
		got := suite.Document(t, oda.SBDefinition, text).Metadata
		if got.Has != want.has || got.Version != want.version {
			t.Errorf("%s: has %b, version %d; want %b, %d", text, got.Has, got.Version, want.has, want.version)
		}
	}
}

var errBroken = errors.New("broken")

// brokenWriter accepts so many bytes and then fails.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestRenderingStopsIfTheWriterOrTheRecordsFail(t *testing.T) {
	body := suite.Document(t, oda.ExecutionBlock, `{"eb_id":"x","request_responses":[],"metadata":{}}`).Body("x")
	records := oda.TextsOf([][]byte{[]byte(`{"request":"a"}`), []byte(`{"request":"b"}`)})
	whole := len(suite.Render(t, &oda.Entity{Body: body, Records: records}))
	for room := range whole {
		if err := body.WriteTo(&brokenWriter{room}, oda.Metadata{}, records); !errors.Is(err, errBroken) {
			t.Errorf("with room for %d of %d bytes: %v", room, whole, err)
		}
	}
	lost := func(yield func([]byte, error) bool) {
		_ = yield([]byte(`{"request":"a"}`), nil) && yield(nil, errBroken)
	}
	if err := body.WriteTo(io.Discard, oda.Metadata{}, lost); !errors.Is(err, errBroken) {
		t.Errorf("records that cannot be read: %v", err)
	}
}

func TestAnEntryOfTheLogIsCheckedBeforeItIsMoved(t *testing.T) {
	body := func(text string) oda.Body { return oda.Body{Text: []byte(text), Digest: oda.DigestOf([]byte(text))} }
	edited := oda.Body{Text: []byte(`{"name":"edited"}`), Digest: oda.DigestOf([]byte(`{"name":"stored"}`))}
	sbd, eb := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}, oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}
	early, late := instant(t, "0000-01-01T00:00:00Z"), instant(t, "9999-01-01T00:00:00Z")
	for name, test := range map[string]struct {
		entry oda.LogEntry
		want  string // that the error names; empty: no error
	}{
		"a version":                  {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: body(`{"name":"stored"}`)}, ""},
		"its text is edited":         {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: edited}, "Version 2 of SBDefinition sbd-1"},
		"its slots are lost":         {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: body(`{"metadata":{"version":}}`)}, "Version 2 of SBDefinition sbd-1"},
		"a record":                   {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", Body: body(`{"request":"x"}`)}, ""},
		"a record is edited":         {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", Body: edited}, "Record 7 in version 1"},
		"a record that came with it": {oda.LogEntry{Ref: sbd, Version: 1, Before: 4, After: 6, Body: body(`{}`), Came: []oda.Body{body(`{}`), edited}}, "Record 6 in version 1"},
		"a time without room":        {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", On: late, CreatedBy: "ann", Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
		"a record without room":      {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", On: late, Body: body(`{"request":"x"}`)}, "Record 7 in version 1"},
		"the latest time":            {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", On: late - 1, CreatedBy: "ann", Body: body(`{}`)}, ""},
		"a time that nobody writes":  {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: early - 1, Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
		"the earliest time":          {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: early, Body: body(`{}`)}, ""},
		"no archive stores this":     {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: 1, Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
	} {
		err := test.entry.Check()
		if (err == nil) != (test.want == "") || err != nil && (oda.CodeOf(err) != oda.DamagedText || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
