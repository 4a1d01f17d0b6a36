package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The first card of each home page leads to its documents, and the first row of Home to the
// newest block.
func TestHomeLeadsToDocumentsAndBlocks(t *testing.T) {
	s := newSite(t, "/ns/oda")
	for home, want := range map[string]string{"": `<a class="card" href="./sbds"`, "api/v1/": `<a class="card" href="./../../sbds"`} {
		if _, first, _ := strings.Cut(s.get(t, home).Text(), `class="cards"`); !strings.Contains(first[:500], want) {
			t.Errorf("%q begins with\n%s", home, first[:500])
		}
	}
	newest := `class="what"><a href="./ebs/` + s.ids(t, "/ebs/search?fields=id&limit=1")[0]
	if _, first, _ := strings.Cut(s.get(t, "").Text(), `class="what"`); !strings.HasPrefix(`class="what"`+first, newest) {
		t.Errorf("the first row is\n%.200s", first)
	}
}

// Where the browser lets no page use the clipboard, the text is copied as by hand. A button
// says for a while what came of it, also after the second time.
func TestTheExamplesAreCopiedByTheirButtons(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	hurried(t, ctx)
	const button = `document.querySelector(".examples li:nth-child(2) .copy")`
	for clipboard, want := range map[string]string{
		`navigator.clipboard.writeText = async (text) => { copied = text; }`:                    "Copied",
		`navigator.clipboard.writeText = async () => { throw new Error("refused"); }`:           "Copied",
		`Object.defineProperty(navigator, "clipboard", {})`:                                     "Copied",
		`Object.defineProperty(navigator, "clipboard", {}), document.execCommand = () => false`: "It could not be copied",
	} {
		do(t, ctx, chromedp.Navigate(s.URL()+"/"))
		evaluate[bool](t, ctx, `window.copied = "", window.told = new Promise((done) => {
			const button = `+button+`, text = document.querySelector(".examples li:nth-child(2) code").textContent;
			document.addEventListener("copy", () => { copied = String(getSelection()); });
			`+clipboard+`;
			new MutationObserver(() => done([button.textContent, copied, text])).observe(button, { childList: true });
		}), true`)
		do(t, ctx, chromedp.Click(chromedp.CSS(`.examples li:nth-child(2) .copy`))) // a person's, or it may not copy
		got := evaluate[[]string](t, ctx, `told`)
		if got[0] != want || want == "Copied" && (got[1] != got[2] || !strings.Contains(got[1], "/request_response")) {
			t.Errorf("with the clipboard %s, it says %q; copied is %q", clipboard, got[0], got[1])
		}
		eventually(t, ctx, button+`.textContent === "Copy"`)
	}

	// The time between is taken in the page, and only what a timer says too early counts.
	do(t, ctx, chromedp.Navigate(s.URL()+"/"))
	if got := evaluate[int](t, ctx, `new Promise((done) => {
		navigator.clipboard.writeText = async () => {};
		const button = `+button+`;
		let second;
		new MutationObserver(() => { if (second && button.textContent === "Copy") done(Math.round(performance.now() - second)); }).observe(button, { childList: true });
		button.click();
		setTimeout(() => { second = performance.now(); button.click(); }, 1500);
	})`); got < 190 {
		t.Errorf("it was said for %d ms, ten times too fast", got)
	}
}

// An address may end in anything.
func TestABrokenFragmentIsHarmless(t *testing.T) {
	s := newSite(t, "")
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.Navigate(s.base+"/sbds#100%"))
	noComplaints(t, ctx, watch)
}

// A test that finds no complaints is worthless if it cannot notice any.
func TestTheWatchNoticesViolations(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
		_, _ = io.WriteString(w, `<!DOCTYPE html><link rel="icon" href="data:,"><script>inline()</script><img src="http://elsewhere.invalid/x.png">`)
	}))
	defer server.Close()
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.Navigate(server.URL))
	complaints := must.Get(watch.Complaints(ctx))(t)
	all := strings.Join(complaints, "\n")
	for _, want := range []string{"Content Security Policy", "ERR_NAME_NOT_RESOLVED"} {
		if !strings.Contains(all, want) {
			t.Errorf("the watch missed %q; it noticed:\n%s", want, all)
		}
	}
	if !strings.Contains(strings.Join(watch.Hosts(), " "), "elsewhere.invalid") {
		t.Errorf("the watch missed the foreign host; it noticed %q", watch.Hosts())
	}
}

// again tries what needs an element again if the element was replaced before it was
// used, by the next page or by a page that renews itself, or if nothing came of it.
func again(try func() error) error {
	err := try()
	for range 3 {
		if err == nil || !strings.Contains(err.Error(), "Could not find node") && !strings.Contains(err.Error(), "No node with given id") &&
			!errors.Is(err, context.DeadlineExceeded) {
			break
		}
		err = try()
	}
	return err
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, step := range steps {
		must.Do(t, again(func() error { return chromedp.Do(ctx, step) }))
	}
}

// follow clicks a link and waits for its page.
func follow(t *testing.T, ctx context.Context, link string) {
	t.Helper()
	err := again(func() error {
		// A page that still moves its parts may move the link away under the click.
		try, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := chromedp.RunResponse(try, chromedp.Click(chromedp.CSS(link)))
		return err
	})
	if err != nil {
		t.Fatalf("follow the link %s: %v", link, err)
	}
}

func text(t *testing.T, ctx context.Context, selector string) (got string) {
	t.Helper()
	err := again(func() (err error) {
		got, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
		return err
	})
	must.Do(t, err)
	return got
}

// shows fails the test unless a part of the page that is open has these texts in it.
func shows(t *testing.T, ctx context.Context, selector string, want ...string) {
	t.Helper()
	got := text(t, ctx, selector)
	for _, text := range want {
		if !strings.Contains(got, text) {
			t.Errorf("%s does not show %q:\n%s", selector, text, got)
		}
	}
}
