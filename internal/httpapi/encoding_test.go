package httpapi_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"oda/internal/test/env"
)

func TestCompression(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/small", `{}`)
	store(t, a, "/sbds/large", `{"text":"`+strings.Repeat("observe ", 1000)+`"}`)
	plain := a.Do("GET", "/sbds/large", "")
	for _, test := range []struct{ accept, encoding string }{
		{"", ""},
		{"identity", ""},
		{"gzip", "gzip"},
		{"zstd", "zstd"},
		{"GZIP", "gzip"},
		{"gzip, deflate, br, zstd", "zstd"},
		{"gzip;q=1, zstd;q=0.5", "gzip"},
		{"gzip;q=0.5, zstd;q=0.5", "zstd"},
		{"gzip;q=0, zstd;q=0", ""},
		{"gzip;q=0", ""},
		{"zstd;q=0, *", "gzip"},
		{"*", "zstd"},
		{"*;q=0", ""},
		{"gzip;q=0.5, identity;q=0.9", ""},
		{"gzip;q=0.9, identity;q=0.5", "gzip"},
		{"br, deflate", ""},
		{"gzip;q=rubbish", ""},
		{" gzip ; q = 0.8 ", "gzip"},
	} {
		t.Run(test.accept, func(t *testing.T) {
			r := want(t, 200, a.Do("GET", "/sbds/large", "", "Accept-Encoding", test.accept))
			if got := r.Header.Get("Content-Encoding"); got != test.encoding {
				t.Fatalf("the encoding is %q, want %q", got, test.encoding)
			}
			if r.Text() != plain.Text() {
				t.Error("the document differs")
			}
			if got := r.Header.Get("Content-Length"); got != strconv.Itoa(len(r.Raw)) {
				t.Errorf("the length is %s, there are %d bytes", got, len(r.Raw))
			}
			if r.Header.Get("Vary") != "Accept-Encoding" {
				t.Error("Vary is missing")
			}
			tag := plain.Header.Get("ETag")
			if test.encoding != "" {
				tag = strings.TrimSuffix(tag, `"`) + "-" + test.encoding + `"`
				if len(r.Raw) >= len(plain.Raw) {
					t.Errorf("compressed it has %d bytes, plain %d", len(r.Raw), len(plain.Raw))
				}
			}
			if got := r.Header.Get("ETag"); got != tag {
				t.Errorf("the tag is %s, want %s", got, tag)
			}
			sameTag(t, a, "/sbds/large", test.accept, r)
			small := want(t, 200, a.Do("GET", "/sbds/small", "", "Accept-Encoding", test.accept))
			if small.Header.Get("Content-Encoding") != "" || strings.Contains(small.Header.Get("ETag"), "z") {
				t.Error("a small document is compressed")
			}
			sameTag(t, a, "/sbds/small", test.accept, small)
		})
	}
	t.Run("answers to writes too", func(t *testing.T) {
		r := want(t, 200, a.Do("PUT", "/sbds/large", plain.Text(), "Accept-Encoding", "zstd"))
		if r.Header.Get("Content-Encoding") != "zstd" {
			t.Error("the answer is not compressed")
		}
		get := a.Do("GET", "/sbds/large", "", "Accept-Encoding", "zstd")
		if get.Text() != r.Text() || get.Header.Get("ETag") != r.Header.Get("ETag") {
			t.Error("GET does not answer what PUT answered")
		}
		want(t, 200, a.Do("PUT", "/sbds/large", get.Text(), "If-Match", get.Header.Get("ETag")))
	})
	t.Run("the description too", func(t *testing.T) {
		for _, path := range []string{"/openapi.json", "/openapi.yaml", "/problems", "/ui", "/ui/swagger-ui.css"} {
			r := want(t, 200, a.Do("GET", path, "", "Accept-Encoding", "gzip"))
			if r.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s is not compressed", path)
			}
			if r.Text() != a.Do("GET", path, "").Text() {
				t.Errorf("%s differs", path)
			}
			sameTag(t, a, path, "gzip", r)
		}
	})
}

// sameTag checks that a 304 has the same tag as the 200.
func sameTag(t *testing.T, a *env.Archive, path, accept string, full *env.Reply) {
	t.Helper()
	tag := full.Header.Get("ETag")
	for _, known := range []string{tag, "*"} {
		r := want(t, 304, a.Do("GET", path, "", "Accept-Encoding", accept, "If-None-Match", known))
		if got := r.Header.Get("ETag"); got != tag {
			t.Errorf("%s, Accept-Encoding: %s, If-None-Match: %s: the 304 carries %s, the 200 has %s", path, accept, known, got, tag)
		}
	}
}

// The size of a block includes its records.
func TestTheTagOfABlockThatGrows(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	for range 12 {
		record(t, a, "POST", "eb", `{"request":"`+strings.Repeat("observe ", 12)+`"}`)
		full := want(t, 200, a.Do("GET", "/ebs/eb", "", "Accept-Encoding", "zstd"))
		sameTag(t, a, "/ebs/eb", "zstd", full)
	}
}

// A block is streamed if it is longer than what is held back.
func TestStreamedBlock(t *testing.T) {
	a := env.Start(t)
	var records []string
	for i := range 4000 {
		records = append(records, fmt.Sprintf(`{"request":"observe","request_args":{"kwargs":{"scan":%d,"text":"%s"}}}`, i, strings.Repeat("ab", 50)))
	}
	list := `"request_responses":[` + strings.Join(records, ",") + `]`
	put := want(t, 200, a.Do("PUT", "/ebs/long", `{`+list+`}`))
	for _, encoding := range []string{"", "gzip", "zstd"} {
		r := want(t, 200, a.Do("GET", "/ebs/long", "", "Accept-Encoding", encoding))
		if r.Text() != put.Text() || !strings.Contains(r.Text(), list) {
			t.Errorf("%q: the block is not what was stored", encoding)
		}
		if r.Header.Get("Content-Encoding") != encoding {
			t.Errorf("the encoding is %q, want %q", r.Header.Get("Content-Encoding"), encoding)
		}
		sameTag(t, a, "/ebs/long", encoding, r)
	}
}
