package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/web"
)

// The page of an archive that is being opened becomes the one that was asked for, also if
// that takes longer than the page waits before it looks again.
func TestASlowPageComesAfterTheOpening(t *testing.T) {
	var opened atomic.Bool
	opening := web.OpeningHandler(web.Config{Version: "1"}, func() (string, float64) { return "its schema is being upgraded", 0.66 })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, asset := strings.CutPrefix(r.URL.Path, "/api/v1/ui/")
		if asset || !opened.Load() {
			if asset {
				r.SetPathValue("file", file)
			}
			opening.ServeHTTP(w, r)
			return
		}
		select {
		case <-time.After(3 * time.Second):
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<main>The archive is open.</main>`)
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(server.URL+"/ebs"))
	opened.Store(true)
	until(t, ctx, "the page that was asked for is there", shown("main", "The archive is open."))
}
