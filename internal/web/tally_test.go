package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"oda/internal/app"
	"oda/internal/test/env"
)

// failures gives what a list says of the failures of a block, and whether all its calls
// were counted.
func (s site) failures(t *testing.T, at, block string) (says string, counted bool) {
	t.Helper()
	cell := regexp.MustCompile(`(?s)<td [^>]*id="failed-` + block + `"([^>]*)>(.*?)</td>`).FindStringSubmatch(s.get(t, at).Text())
	if cell == nil {
		t.Fatalf("%q says nothing of the failures of %s", at, block)
	}
	return strings.TrimSpace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell[2], "")), !strings.Contains(cell[1], "data-partial")
}

// Home, lists and searches say how many calls of each block failed, as it is now.
func TestListsSayWhichBlocksFailed(t *testing.T) {
	for name, configure := range map[string]func(*app.Config){
		"sqlite":   func(*app.Config) {},
		"postgres": func(cfg *app.Config) { cfg.Database = env.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := emptySite(t, configure)
			s.store(t, "/ebs/eb-none", `{}`)
			s.storeCalls(t, "eb-good", []string{callIn("m.f", 0, 1, false)})
			s.storeCalls(t, "eb-bad", []string{callIn("m.f", 0, 1, true), callIn("m.f", 1, 2, false), callIn("m.f", 3, 4, true)})
			must := func(what, block, want string) {
				t.Helper()
				for _, at := range []string{"", "ebs", "search?q=eb"} {
					if got, counted := s.failures(t, at, block); got != want || !counted {
						t.Errorf("%s, %q says that of %s %q failed, want %q", what, at, block, got, want)
					}
				}
			}
			must("at first", "eb-none", "0")
			must("at first", "eb-good", "0")
			must("at first", "eb-bad", "2")
			s.record(t, "eb-good", callIn("m.f", 5, 6, true))
			must("after a failure", "eb-good", "1")
			s.storeCalls(t, "eb-bad", []string{callIn("m.f", 1, 2, false)})
			must("in a version without failures", "eb-bad", "0")
			s.record(t, "eb-bad", callIn("m.f", 5, 6, true))
			must("after a failure in it", "eb-bad", "1")
			s.says(t, "ebs", `href="./ebs/eb-bad?calls=failed#calls">1</a>`)
		})
	}
}

// Blocks that are too long to be counted at once are counted in the end, and a page that
// is open says so by itself.
func TestFailuresOfLongBlocksAreCountedInTheEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	s := emptySite(t)
	calls := make([]string, 20_000)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"request":"m.f","status":"%s"}`, []string{"OK", "ERROR"}[i%1000/999])
	}
	for i := range 4 {
		s.storeCalls(t, fmt.Sprint("eb-long-", i), calls)
	}
	s.storeCalls(t, "eb-short", []string{callIn("m.f", 0, 1, true)})
	if got, counted := s.failures(t, "ebs", "eb-short"); got != "1" || !counted {
		t.Errorf("long blocks keep a short one from being counted: %q failed", got)
	}
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs"))
	eventually(t, ctx, `[...document.querySelectorAll("td.bad[data-name=Failed]")].map((cell) => cell.textContent.trim()).sort().join() === "1,20,20,20,20"`)
}
