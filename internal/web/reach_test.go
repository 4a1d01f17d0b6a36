package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/test/env"
	"oda/internal/web"
)

// reachable finds what can be used on a page; visited notes what had the focus, if it
// was seen to have it.
const (
	noteFocus = `window.visited = new Set(); window.unseen = [];
		document.addEventListener("focusin", ({ target }) => {
			visited.add(target);
			const style = getComputedStyle(target);
			const drawn = style.outlineStyle !== "none" || target.closest("svg");
			if (!drawn) unseen.push(target.outerHTML.slice(0, 80));
		}); true`
	reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
		.filter((e) => !e.disabled && (e.checkVisibility?.() ?? true))`
)

// With the keyboard alone, a person gets everywhere on every page, and sees where.
func TestTheKeyboardReachesEverything(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 800))
	kinds := map[string]bool{}
	for _, at := range s.tour(t) {
		// Addresses that differ in their filters lead to pages of the same kind.
		kind, _, _ := strings.Cut(at, "?")
		if kinds[kind] {
			continue
		}
		kinds[kind] = true
		var missed []string
		for range 3 { // a page may renew itself meanwhile
			do(t, ctx, chromedp.Navigate(s.base+"/"+at))
			evaluate[bool](t, ctx, noteFocus)
			do(t, ctx, chromedp.KeyEvent(strings.Repeat(kb.Tab, evaluate[int](t, ctx, reachable+`.length`)+3)))
			if missed = evaluate[[]string](t, ctx, reachable+`.filter((e) => !visited.has(e)).map((e) => e.outerHTML.slice(0, 80))`); len(missed) == 0 {
				break
			}
		}
		if len(missed) > 0 {
			t.Errorf("on %s the Tab key does not reach\n%s", at, strings.Join(missed, "\n"))
		}
		if unseen := evaluate[[]string](t, ctx, `unseen`); len(unseen) > 0 {
			t.Errorf("on %s nothing shows that these have the focus:\n%s", at, strings.Join(unseen, "\n"))
		}
	}

	// From Home to the newest block, and into one of its calls.
	do(t, ctx, chromedp.Navigate(s.base+"/"))
	tabTo(t, ctx, `#blocks .what a`)
	enter(t, ctx)
	tabTo(t, ctx, `.calls summary`)
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	until(t, ctx, "the call is unfolded", `document.activeElement.closest("details").open`)
	// From there to a search.
	do(t, ctx, chromedp.Navigate(s.base+"/changes"))
	tabTo(t, ctx, `.find input`)
	do(t, ctx, chromedp.KeyEvent("band"))
	enter(t, ctx)
	if got := text(t, ctx, `main`); !strings.Contains(got, " in band ") {
		t.Errorf("the search finds\n%s", got)
	}
}

// tabTo presses the Tab key until something has the focus.
func tabTo(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	for range 200 {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		if evaluate[bool](t, ctx, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
	}
	t.Fatalf("the Tab key does not reach %s", selector)
}

// enter presses the Enter key, which leads to another page.
func enter(t *testing.T, ctx context.Context) {
	t.Helper()
	if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
}

// Whatever the browser does for pages and for their workers, it does with this host
// alone. Its own log of the network says so.
func TestNoRequestLeavesTheHost(t *testing.T) {
	s := newSite(t, "/ns/x")
	leak := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!DOCTYPE html><img src="http://elsewhere.invalid/x.png">`)
	}))
	defer leak.Close()
	ctx, stop := env.BrowserWithLog(t)
	do(t, ctx, chromedp.Navigate(leak.URL)) // or the log might see nothing
	for _, at := range s.tour(t) {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
	}
	s.connected(t, ctx, "changes")

	var log struct {
		Events []struct {
			Params struct {
				URL, Initiator string
			}
		}
	}
	if err := json.Unmarshal(stop(), &log); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, e := range log.Events {
		// Without a page as its initiator, a request is the browser's own, or the
		// navigation of this test.
		if strings.HasPrefix(e.Params.Initiator, "http://127.0.0.1:") {
			asked[e.Params.URL] = true
		}
	}
	for address := range asked {
		to, err := url.Parse(address)
		if err != nil || to.Hostname() != "127.0.0.1" && to.Host != "elsewhere.invalid" {
			t.Errorf("the browser asked for %s", address)
		}
	}
	for _, address := range []string{"http://elsewhere.invalid/x.png", s.URL() + "/changes?after=now"} {
		if !asked[address] {
			t.Errorf("the log does not have %s", address)
		}
	}
}

// Links lead from Home to every page that there is.
func TestEveryPageIsReachedFromHome(t *testing.T) {
	s := newSite(t, "/ns/x")
	mux := http.NewServeMux()
	missing := map[string]bool{}
	for pattern, page := range web.New(web.Config{}).Pages() {
		if !strings.Contains(pattern, "/timeline") { // which is data of the page of a block
			missing[pattern] = true
		}
		mux.HandleFunc("/ns/x"+pattern, func(http.ResponseWriter, *http.Request) { _ = page })
	}
	home, err := url.Parse(s.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for queue := []*url.URL{home}; len(queue) > 0 && len(missing) > 0; queue = queue[1:] {
		_, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: queue[0], Host: queue[0].Host})
		short := strings.TrimPrefix(pattern, "/ns/x")
		if !missing[short] {
			continue
		}
		reply := s.get(t, strings.TrimPrefix(queue[0].String(), home.String()))
		if reply.Status >= 400 {
			t.Errorf("%s answers %d", queue[0], reply.Status)
		}
		delete(missing, short)
		for _, found := range linkTo.FindAllStringSubmatch(reply.Text(), -1) {
			to, err := queue[0].Parse(strings.NewReplacer("&amp;", "&").Replace(found[1]))
			if err == nil && !seen[to.String()] {
				seen[to.String()] = true
				queue = append(queue, to)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no link leads to %v", missing)
	}
}

// A night is printed on one page, however many blocks it has.
func TestANightPrintsOnOnePage(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	busy := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	for i := range 150 {
		at := busy.Add(time.Duration(i) * 5 * time.Minute)
		s.must(t, "PUT", fmt.Sprintf("/ebs/eb-busy-%d", i), fmt.Sprintf(`{"telescope":"ska_%d","request_responses":[{"request":"f%d","status":"ERROR","request_sent_at":"%s","response_received_at":"%s"}]}`,
			i%4, i, at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339)))
	}
	for _, date := range []string{time.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly), "2001-01-01", "2026-01-31"} {
		do(t, ctx, chromedp.Navigate(s.base+"/night?date="+date))
		pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF())
		if err != nil {
			t.Fatal(err)
		}
		if pages := regexp.MustCompile(`/Type /Pages\s*/Count (\d+)`).FindStringSubmatch(string(pdf)); len(pages) != 2 || pages[1] != "1" {
			t.Errorf("the night of %s is printed on %q pages", date, pages)
		}
	}
}
