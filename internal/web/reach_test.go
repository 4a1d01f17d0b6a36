package web_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// From Home with the keyboard alone to the newest block, into one of its calls, and from
// there to a search.
func TestTheKeyboardLeadsEverywhere(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/"))
	tabTo(t, ctx, `#blocks .what a`)
	enter(t, ctx)
	tabTo(t, ctx, `.calls summary`)
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	eventually(t, ctx, `document.activeElement.closest("details").open`)
	do(t, ctx, chromedp.Navigate(s.base+"/changes"))
	tabTo(t, ctx, `.find input`)
	do(t, ctx, chromedp.KeyEvent("band"))
	enter(t, ctx)
	shows(t, ctx, `main`, " in band ")
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
	must.Get(chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter)))(t)
}

// A night is printed on one page, however many blocks it has.
func TestANightPrintsOnOnePage(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	busy := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	for i := range 150 {
		at := busy.Add(time.Duration(i) * 5 * time.Minute)
		s.Must("PUT", fmt.Sprintf("/ebs/eb-busy-%d", i), fmt.Sprintf(`{"telescope":"ska_%d","request_responses":[{"request":"f%d","status":"ERROR","request_sent_at":"%s","response_received_at":"%s"}]}`,
			i%4, i, at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339)))
	}
	for i := range 40 {
		s.Must("PUT", fmt.Sprintf("/notes/note-busy-%d", i), fmt.Sprintf(`{"text":%q,"level":"problem","time_lost_s":60,"tags":["wind"],"from":"%s"}`,
			strings.Repeat("- much to say\n", 30), busy.AddDate(0, 0, -i%2).Format(time.RFC3339)))
	}
	for _, date := range []string{time.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly), "2001-01-01", "2026-01-31"} {
		do(t, ctx, chromedp.Navigate(s.base+"/night?date="+date))
		pdf := must.Get(chromedp.Run(ctx, chromedp.PrintToPDF()))(t)
		if pages := regexp.MustCompile(`/Type /Pages\s*/Count (\d+)`).FindStringSubmatch(string(pdf)); len(pages) != 2 || pages[1] != "1" {
			t.Errorf("the night of %s is printed on %q pages", date, pages)
		}
	}
}
