package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
)

func TestTheSwaggerFilesAreThoseOfTheRelease(t *testing.T) {
	assets := loadAssets()
	checked := map[string]bool{"CHECKSUMS": true}
	lines := bufio.NewScanner(bytes.NewReader(mustRead("assets/swagger/CHECKSUMS")))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		want, name, _ := strings.Cut(lines.Text(), "  ")
		f, ok := assets[name]
		if !ok {
			t.Errorf("CHECKSUMS names %q, which is not served", name)
			continue
		}
		content := gunzip(t, f.gz)
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("the sum of %s is %s, want %s", name, got, want)
		}
		if int64(len(content)) != f.size {
			t.Errorf("the size of %s is %d, want %d", name, f.size, len(content))
		}
		checked[name+".gz"] = true
	}
	entries := must.Get(embedded.ReadDir("assets/swagger"))(t)
	for _, e := range entries {
		if !checked[e.Name()] {
			t.Errorf("%s is embedded but has no sum in CHECKSUMS", e.Name())
		}
	}
}

func TestEveryAnswerHasStrictSecurityHeaders(t *testing.T) {
	const strict = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	tests := map[string]struct{ path, policy, contentType, cache string }{
		"home page":  {"/api/v1/", pagePolicy, htmlType, "private, no-cache"},
		"Swagger UI": {"/api/v1/ui", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " + strict, htmlType, "no-cache"},
		"script":     {"/api/v1/ui/swagger-ui-bundle.js", filePolicy, "text/javascript; charset=utf-8", "public, max-age=3600"},
		"style":      {"/api/v1/ui/site.css", filePolicy, "text/css; charset=utf-8", "public, max-age=3600"},
		"picture":    {"/api/v1/ui/icon.svg", filePolicy, "image/svg+xml", "public, max-age=3600"},
		"licence":    {"/api/v1/ui/LICENSE", filePolicy, "text/plain; charset=utf-8", "public, max-age=3600"},
	}
	site := emptySite(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := get(t, site, test.path, nil)
			for header, want := range map[string]string{
				"Content-Security-Policy": test.policy,
				"Content-Type":            test.contentType,
				"Cache-Control":           test.cache,
				"Referrer-Policy":         "same-origin",
				"Vary":                    "Accept-Encoding",
				"X-Content-Type-Options":  "nosniff",
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if test.contentType == htmlType && strings.Contains(w.Body.String(), "<script>") {
				t.Error("the page has an inline script")
			}
		})
	}
}

func TestAnAnswerIsCompressedWhenTheClientAsks(t *testing.T) {
	tests := map[string]bool{
		"":                        false,
		"gzip":                    true,
		"GZIP":                    true,
		"deflate, gzip;q=0.5, br": true,
		"br":                      false,
		"*":                       true,
		"gzip;q=0":                false,
		"gzip; q=0.000, *":        false,
		"*;q=0":                   false,
		"*;q=0, gzip":             true,
		"gzip;q=much":             false,
		"identity":                false,
	}
	site := emptySite(t)
	for _, at := range []string{"/api/v1/ui", "/api/v1/ui/swagger-ui.css", "/api/v1/ui/site.js"} {
		plain := get(t, site, at, nil)
		for accept, compressed := range tests {
			t.Run(at+" "+accept, func(t *testing.T) {
				w := get(t, site, at, http.Header{"Accept-Encoding": {accept}})
				if got := w.Header().Get("Content-Encoding") == "gzip"; got != compressed {
					t.Fatalf("the answer is compressed: %v, want %v", got, compressed)
				}
				if got, want := w.Header().Get("Content-Length"), strconv.Itoa(w.Body.Len()); got != want {
					t.Errorf("Content-Length: %s, want %s", got, want)
				}
				body := w.Body.Bytes()
				if compressed {
					body = gunzip(t, body)
				}
				if !bytes.Equal(body, plain.Body.Bytes()) {
					t.Error("the content depends on the encoding")
				}
				if got := w.Header().Get("ETag") != plain.Header().Get("ETag"); got != compressed {
					t.Errorf("the forms have the entity tags %s and %s", w.Header().Get("ETag"), plain.Header().Get("ETag"))
				}
			})
		}
	}
}

func TestAClientThatHasTheFileGets304(t *testing.T) {
	site := emptySite(t)
	for _, at := range []string{"/api/v1/ui", "/api/v1/ui/swagger-ui.css"} {
		plain := get(t, site, at, nil).Header().Get("ETag")
		compressed := get(t, site, at, http.Header{"Accept-Encoding": {"gzip"}}).Header().Get("ETag")
		tests := map[string]int{
			plain:                    http.StatusNotModified,
			compressed:               http.StatusNotModified,
			"W/" + plain:             http.StatusNotModified,
			`"other", ` + compressed: http.StatusNotModified,
			"*":                      http.StatusNotModified,
			`"other"`:                http.StatusOK,
			strings.Trim(plain, `"`): http.StatusNotModified, // as the API accepts it
		}
		for tag, want := range tests {
			w := get(t, site, at, http.Header{"If-None-Match": {tag}})
			if w.Code != want {
				t.Errorf("GET %s with If-None-Match: %s answers %d, want %d", at, tag, w.Code, want)
			}
			if w.Code == http.StatusNotModified && (w.Body.Len() > 0 || w.Header().Get("ETag") != plain) {
				t.Errorf("GET %s answers 304 with %d bytes and the tag %s", at, w.Body.Len(), w.Header().Get("ETag"))
			}
		}
	}
}

func TestAnUnknownFileIsNoSuchPath(t *testing.T) {
	site := New(Config{})
	for _, name := range []string{"", "nothing.js", "CHECKSUMS", "home.html", "../site.css", "swagger/LICENSE", "swagger-ui.css.gz"} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/ui/x", nil)
		r.SetPathValue("file", name)
		w := httptest.NewRecorder()
		if got := oda.CodeOf(site.Asset(w, r)); got != oda.NoSuchPath {
			t.Errorf("the file %q is answered with the code %q, want %q", name, got, oda.NoSuchPath)
		}
		if len(w.Header()) > 0 || w.Body.Len() > 0 {
			t.Errorf("the file %q is refused after something was written", name)
		}
	}
}

// get requests a page or a file as the router would.
func get(t *testing.T, site *Site, at string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, at, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	serve := site.Asset
	switch at {
	case "/api/v1/":
		serve = site.Home
	case "/api/v1/ui":
		serve = site.UI
	default:
		r.SetPathValue("file", path.Base(at))
	}
	w := httptest.NewRecorder()
	must.Do(t, serve(w, r))
	return w
}

func gunzip(t *testing.T, gz []byte) []byte {
	t.Helper()
	zr := must.Get(gzip.NewReader(bytes.NewReader(gz)))(t)
	content := must.Get(io.ReadAll(zr))(t)
	return content
}
