package oda_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
)

func TestTheTypeOfAnError(t *testing.T) {
	for _, test := range []struct{ problem, want string }{
		{`{"detail":"ConnectionError: refused"}`, "ConnectionError"},
		{`{"detail":"tango.DevFailed: reason: x"}`, "DevFailed"},
		{`{"detail":"ska.errors.Timeout_2Error : late"}`, "Timeout_2Error"},
		{`{"stacktrace":"Traceback (most recent call last):\n  File \"x.py\", line 1\na.b.ValueError: no","detail":"KeyError: 'x'"}`, "ValueError"},
		{`{"stacktrace":"Traceback\nValueError: no\n\n"}`, "ValueError"},
		{`{"stacktrace":"Traceback\nKeyboardInterrupt\n"}`, "KeyboardInterrupt"},
		{`{"stacktrace":"Traceback\nf.<locals>.MyError: no","detail":"KeyError: 'x'"}`, "KeyError"},
		{`{"stacktrace":null,"detail":"ÉchecError: non"}`, "ÉchecError"},
		{`{"detail":"it failed: because"}`, ""},
		{`{"detail":"Failed"}`, ""},
		{`{"detail":"failed: X"}`, ""},
		{`{"detail":"a..B: x"}`, ""},
		{`{"detail":".B: x"}`, ""},
		{`{"detail":"a.2B: x"}`, ""},
		{`{"detail":"Two Words: x"}`, ""},
		{`{"detail":7,"stacktrace":[1]}`, ""},
		{`{}`, ""},
	} {
		c := oda.CallOf([]byte(`{"request":"r","error":` + test.problem + `}`))
		got := ""
		if e := c.Error(); e == nil {
			t.Errorf("%s: there is no error", test.problem)
		} else if e.Type != nil {
			got = *e.Type
		}
		if got != test.want || !c.Failed {
			t.Errorf("%s: the type is %q, want %q", test.problem, got, test.want)
		}
	}
}

func TestTheDeviceOfACall(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"kwargs":{"device":"SKA001"}}`:                              "SKA001",
		`{"args":["x"],"kwargs":{"subarray_id":1,"receptor":"SKA2"}}`: "SKA2",
		`{"subarray_id":1}`:                                           "subarray 1",
		`{"station":12,"device":null}`:                                "station 12",
		`{"kwargs":{"dish":["a"],"dish_id":""}}`:                      "",
		`"scan(device=1)"`:                                            "",
		`null`:                                                        "",
		`{"device":"a\u0000b"}`:                                       "a\uFFFDb",
		`{"device":"` + strings.Repeat("é", 200) + `"}`:               strings.Repeat("é", 160),
	} {
		c := oda.CallOf([]byte(`{"request":"r","request_args":` + arguments + `}`))
		if got := c.Device(); got != want {
			t.Errorf("%s: the device is %q, want %q", arguments, got, want)
		}
	}
}

func TestARecordAsACall(t *testing.T) {
	moment := func(text string) *oda.Moment {
		var m oda.Moment
		if err := m.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return &m
	}
	took, problem := oda.Elapsed(1_500_000), "E: x"
	kind := "E"
	r := oda.Record{Sequence: 7, By: "ann", RecordedOn: 5, Text: []byte(`{"request":"a.b.scan","request_sent_at":"2026-03-01T00:00:00Z",
		"response_received_at":"2026-03-01T00:00:01.5Z","status":"ERROR","error":{"detail":"E: x"}}`)}
	want := oda.CallEntry{
		Block: "eb-1", Sequence: 7, Request: "a.b.scan", SentAt: moment("2026-03-01"), ReceivedAt: moment("2026-03-01T00:00:01.5Z"), Took: &took,
		Outcome: oda.CallFailed, Error: &oda.CallError{Type: &kind, Detail: &problem}, By: "ann", At: oda.Instant(*moment("2026-03-01")),
	}
	if diff := cmp.Diff(want, r.Entry("eb-1")); diff != "" {
		t.Errorf("- wanted, + got:\n%s", diff)
	}
	keys := oda.KeysOfCall(r.Text)
	if keys.Notable == nil || !keys.Notable.IsLong() || keys.Day != oda.DayOf(want.At) {
		t.Errorf("its keys are %+v", keys)
	}
	r.Text = []byte(`{"request":"r"}`)
	if e := r.Entry("eb-1"); e.At != 5 || e.Took != nil || e.Outcome != oda.CallOK || e.Error != nil {
		t.Errorf("a record with a request only is the call %+v", e)
	}
	for text, isNotable := range map[string]bool{
		`{"request":"r"}`: false, `{"request":"r","status":"ok","error":null}`: false, `{"request":"r","status":"ERROR"}`: true, `{"request":"r","status":"OK","error":{}}`: true,
		`{"request":"r","request_sent_at":"2026-03-01T00:00:00Z","response_received_at":"2026-03-01T00:00:00.999999Z"}`: false,
		`{"request":"r","request_sent_at":"2026-03-01T00:00:00Z","response_received_at":"2026-03-01T00:00:01Z"}`:        true,
		`{"request":"r","request_sent_at":"2026-03-01T00:00:09Z","response_received_at":"2026-03-01T00:00:01Z"}`:        false,
	} {
		if got := oda.KeysOfCall([]byte(text)).Notable != nil; got != isNotable {
			t.Errorf("%s is notable: %t", text, got)
		}
	}
}
