package web_test

import (
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"

	"oda/internal/app"
	"oda/internal/test/env"
)

// On PostgreSQL every page answers as it does on the embedded engine.
func TestEveryPageOnPostgreSQL(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.Database = env.Postgres(t) })
	fill(t, a)
	embedded, postgres := newSite(t, ""), site{a, a.Origin()}
	heading := regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	rows := regexp.MustCompile(`<tr`)
	there := postgres.tour(t)
	for i, at := range embedded.tour(t) {
		want, got := embedded.get(t, at), postgres.get(t, there[i])
		if got.Status != want.Status || !heading.MatchString(got.Text()) {
			t.Errorf("%s answers %d, and %s on PostgreSQL %d\n%s", at, want.Status, there[i], got.Status, got.Text())
		}
		if regexp.MustCompile(`^(sbds|sbis|ebs|prjs)\?limit=`).MatchString(at) {
			if n, m := len(rows.FindAllString(want.Text(), -1)), len(rows.FindAllString(got.Text(), -1)); n != m {
				t.Errorf("%s has %d rows, and on PostgreSQL %d", at, n, m)
			}
		}
	}
}

// On PostgreSQL the timeline is drawn, filtered and followed as on the embedded engine.
func TestATimelineOnPostgreSQL(t *testing.T) {
	s := emptySite(t, func(cfg *app.Config) { cfg.Database = env.Postgres(t) })
	s.storeCalls(t, "eb-1", observed())
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	showTimeline(t, ctx, s, "eb-1?call=2")
	eventually(t, ctx, red+` > 500`)
	shows(t, ctx, `.panel`, "it broke")
	if r := s.timeline(t, "eb-1", "calls=failed"); len(r.Bars) != 2 || r.Calls != len(observed()) || !r.Complete {
		t.Errorf("%d of %d calls are drawn", len(r.Bars), r.Calls)
	}
	s.record(t, "eb-1", callIn("scripting.devicecontrol.scan", 510, 511, true))
	eventually(t, ctx, `document.querySelector(".tally").textContent.includes("3 failed")`)
	s.storeCalls(t, "eb-1", []string{callIn("m.other", 0, 1, false)})
	eventually(t, ctx, shown(".tally", "1 call")+" && "+shown(".tally", "none failed"))
	s.say(t, "ebs/eb-1", `{"status":"Failed","reason":"the wind"}`)
	eventually(t, ctx, shown("#standing", "the wind")+" && "+shown("#said tr.current", "the wind"))
	noComplaints(t, ctx, watch)
}
