package moving

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"oda/internal/test/must"
)

// silent answers as an archive over HTTP/2 that falls silent, before or in its answer. Of the
// end of a request it says no more than that there was one.
type silent struct{ answers bool }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	never := func() error { <-r.Context().Done(); return r.Context().Err() }
	if !s.answers {
		return nil, never()
	}
	cut, body := io.Pipe()
	go func() { body.CloseWithError(never()) }()
	return &http.Response{StatusCode: http.StatusOK, Body: cut}, nil
}

func TestAnArchiveThatFallsSilent(t *testing.T) {
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := must.Get(newRemote("https://archive.example", 1<<20, silent{answers}, nil))(t)
			if _, err := r.read(t.Context(), "/sbds", r.maxDocument); err == nil || !strings.Contains(err.Error(), "it was silent for 5 minutes") {
				t.Errorf("answers %v: %v", answers, err)
			}
		})
	}
}

func TestAListMayBeLongButNotOneOfItsElements(t *testing.T) {
	const most = 2000
	many := "[" + strings.Repeat(`"sbd-1", `, most) + `"last"]`
	for name, test := range map[string]struct {
		list, want string
		elements   int
	}{
		"none":                    {" [ ] ", "", 0},
		"many elements":           {many, "", most + 1},
		"documents":               {`[{"a":"]},[\"","b":[1,{}]} , [ ] ,-1.5e3,null]`, "", 4},
		"blanks after it":         {many + strings.Repeat(" ", most/2), "", most + 1},
		"something after it":      {many + strings.Repeat(" ", most/2) + "1", "something follows", most + 1},
		"endless blanks after it": {many + strings.Repeat(" ", 2*most), "more than 2000 blanks", most + 1},
		"endless blanks":          {`["sbd-1",` + strings.Repeat(" ", 2*most) + `"sbd-2"]`, "more than 2000 blanks", 1},
		"and before a comma":      {`["sbd-1"` + strings.Repeat(" ", 2*most) + `,"sbd-2"]`, "an element of more than 2000 bytes", 0},
		"an endless string":       {`["sbd-1","` + strings.Repeat("a", 2*most) + `"]`, "an element of more than 2000 bytes", 1},
		"an endless number":       {`["sbd-1",` + strings.Repeat("1", 2*most), "an element of more than 2000 bytes", 1},
		"it ends in a string":     {`["sbd-1","sbd`, "cut off", 1},
		"it ends after a comma":   {`["sbd-1",`, "cut off", 1},
		"a comma too many":        {`["sbd-1",]`, "not valid JSON", 1},
		"no comma":                {`["sbd-1" "sbd-2"]`, "not valid JSON", 0},
		"no list":                 {`{"a":[]}`, "is not a list", 0},
		"nothing":                 {"", "is not a list", 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := elements(iotest.OneByteReader(strings.NewReader(test.list)), most, func(json.RawMessage) error {
				n++
				return nil
			})
			if n != test.elements {
				t.Errorf("%d elements, want %d", n, test.elements)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
