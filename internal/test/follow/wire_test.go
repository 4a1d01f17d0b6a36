package follow

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/load"
)

const (
	storedText   = `{"position":3,"kind":"sbds","id":"sbd-1","change":"stored","version":2,"by":"mary","on":"1970-01-01T00:00:00.000007Z"}`
	recordedText = `{"position":9,"kind":"ebs","id":"eb-1","change":"recorded","version":1,"first_sequence":4,"last_sequence":5,"by":"mary","on":"1970-01-01T00:00:00.000008Z"}`
	saidText     = `{"position":10,"kind":"ebs","id":"eb-1","change":"status","version":1,"sequence":2,"status":"Done","class":"done","at":"1970-01-01T00:00:00.000006Z","current":true,"by":"mary","on":"1970-01-01T00:00:00.000009Z"}`
)

var decoded = map[string][]step{
	storedText: {{Unit: load.VersionOf(plan, 2), position: 3, by: "mary", on: 7}},
	recordedText: {
		{Unit: load.RecordOf(block, 4), position: 8, block: 1, by: "mary"},
		{Unit: load.RecordOf(block, 5), position: 9, block: 1, by: "mary", on: 8},
	},
	saidText: {{Unit: load.StatusOf(block, 2), position: 10, block: 1, at: 6, current: true, by: "mary", on: 9}},
}

func TestAChangeIsTakenApart(t *testing.T) {
	for text, want := range decoded {
		got, err := decodeChange([]byte(text))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for about, text := range map[string]string{
		"not JSON":                   `{`,
		"no kind":                    strings.Replace(storedText, "sbds", "", 1),
		"no instant":                 strings.Replace(storedText, "1970-01-01T00:00:00.000007Z", "", 1),
		"no position":                strings.Replace(storedText, `"position":3`, `"position":0`, 1),
		"stored with sequences":      strings.Replace(recordedText, "recorded", "stored", 1),
		"recorded without sequences": strings.Replace(storedText, "stored", "recorded", 1),
		"sequences backward":         strings.Replace(recordedText, `:5,`, `:3,`, 1),
		"a status without sequence":  strings.Replace(saidText, `"sequence":2,`, "", 1),
		"a status without a time":    strings.Replace(saidText, "1970-01-01T00:00:00.000006Z", "", 1),
		"stored with a status":       strings.Replace(saidText, `:"status"`, `:"stored"`, 1),
		"another change":             strings.Replace(storedText, "stored", "deleted", 1),
	} {
		if got, err := decodeChange([]byte(text)); err == nil {
			t.Errorf("%s: got %v, want an error", about, got)
		}
	}
}

func TestAStreamIsReadEventByEvent(t *testing.T) {
	first := "id: 3\nevent: change\ndata: " + storedText + "\n\n"
	second := "id:9\r\nevent:change\r\ndata:" + recordedText + "\r\n\r\n"
	for about, test := range map[string]struct {
		stream string
		want   []oda.Position // of the last step of each event
		cut    bool           // and not wrong
	}{
		"two events":                {first + second, []oda.Position{3, 9}, true},
		"a place without an event":  {"retry: 100\nid: 2\n\n" + first + second, []oda.Position{3, 9}, true},
		"comments and settings":     {": hello\n\nretry: 100\n\n" + first + ":\n\n" + second, []oda.Position{3, 9}, true},
		"the second cut off":        {first + second[:len(second)-2], []oda.Position{3}, true},
		"in the middle of a line":   {first + second[:40], []oda.Position{3}, true},
		"another id":                {strings.Replace(first, "id: 3", "id: 4", 1), nil, false},
		"no id":                     {strings.Replace(first, "id: 3\n", "", 1), nil, false},
		"another event":             {strings.Replace(first, "change", "chance", 1), nil, false},
		"two lines of data":         {strings.Replace(first, "data", "data: x\ndata", 1), nil, false},
		"a field that nobody knows": {"x: y\n" + first, nil, false},
	} {
		t.Run(about, func(t *testing.T) {
			lines := bufio.NewReader(strings.NewReader(test.stream))
			var got []oda.Position
			for {
				changes, err := readEvent(lines)
				if err != nil {
					if errors.Is(err, errCut) != test.cut {
						t.Errorf("it ends with %v", err)
					}
					break
				}
				got = append(got, changes[len(changes)-1].position)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
		})
	}
}
