package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/web"
)

// While the archive is being opened, the page says how far that is, as it goes on.
func TestThePageOfAnArchiveThatIsBeingOpened(t *testing.T) {
	var step atomic.Int64
	pages := web.OpeningHandler(web.Config{Version: "1"}, func() (string, float64) {
		n := step.Add(1)
		return "its schema is being upgraded: step " + strings.Repeat("I", int(n)), 0.66
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := strings.CutPrefix(r.URL.Path, "/api/v1/ui/"); ok {
			r.SetPathValue("file", file)
		}
		pages.ServeHTTP(w, r)
	}))
	defer server.Close()
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(server.URL+"/ebs"), chromedp.WaitVisible(`//p[contains(text(), "step II")]`))
	mustBeUsable(t, ctx, "light")
	if got := evaluate[float64](t, ctx, `document.querySelector("progress").value`); got != 66 {
		t.Errorf("%v percent are done", got)
	}
}
