package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"oda/api"
	"oda/internal/test/env"
)

// described serves the pages with the real description.
func described(t *testing.T) *httptest.Server {
	t.Helper()
	pages := routes(t, "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/openapi.json" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(api.JSON)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// screens are the sizes of a phone, a desk and a wall.
var screens = map[string]struct{ width, height int64 }{"phone": {390, 844}, "desk": {1280, 800}, "wall": {2560, 1440}, "desk at 200 %": {640, 400}}

func TestTheFirstOperationIsOnTheFirstScreen(t *testing.T) {
	server := described(t)
	for _, name := range []string{"phone", "desk"} {
		t.Run(name, func(t *testing.T) {
			screen := screens[name]
			ctx := env.Browser(t)
			do(t, ctx, chromedp.EmulateViewport(screen.width, screen.height),
				chromedp.Navigate(server.URL+"/api/v1/ui"), chromedp.WaitVisible(chromedp.CSS(`.opblock`)))
			bottom, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.querySelector(".opblock").getBoundingClientRect().bottom`))
			if err != nil {
				t.Fatal(err)
			}
			if bottom > float64(screen.height) {
				t.Errorf("the operation ends at %v of %d", bottom, screen.height)
			}
		})
	}
}

// wide finds the elements that are wider than the screen and cannot be
// scrolled.
const wide = `(() => {
	const found = [];
	const look = (element) => {
		if (element.getBoundingClientRect().right > innerWidth + 1) {
			found.push(element.tagName + "." + element.className + " " + element.textContent.slice(0, 40));
		}
		if (!["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX)) {
			for (const child of element.children) look(child);
		}
	};
	look(document.body);
	return found;
})()`

func TestNothingIsWiderThanAPhone(t *testing.T) {
	server := described(t)
	phone := screens["phone"]
	ctx := env.Browser(t)
	for _, page := range []string{"", "guide", "problems", "problems/metadata-mismatch", "ui"} {
		do(t, ctx, chromedp.EmulateViewport(phone.width, phone.height), chromedp.Navigate(server.URL+"/api/v1/"+page))
		if page == "ui" {
			unfold(t, ctx)
		}
		found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](wide))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			t.Errorf("on /%s these are wider than the screen:\n%s", page, strings.Join(found, "\n"))
		}
	}
}

// unfold opens one operation of each form in the Swagger UI.
func unfold(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, id := range []string{"listEBs", "storeEB", "readRecords", "recordBatch", "storeSeveral"} {
		block := `.opblock[id$="-` + id + `"]`
		do(t, ctx, chromedp.Click(chromedp.CSS(block+` .opblock-summary-control`)),
			chromedp.WaitVisible(chromedp.CSS(block+` .responses-inner`)))
	}
}
