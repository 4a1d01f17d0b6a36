package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/client"
	"oda/internal/demo"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Pictures of every page, to be looked at: of an empty archive, of a week, and of
// absurd data; on a phone, a desk and a wall, in both colour schemes. They are made
// if ODA_PICTURES names a directory.
func TestPictures(t *testing.T) {
	dir := os.Getenv("ODA_PICTURES")
	if dir == "" {
		t.Skip("ODA_PICTURES names no directory for the pictures")
	}
	week := newSite(t, "")
	empty := env.Start(t)
	none := site{empty, strings.TrimSuffix(empty.URL(), "/api/v1")}
	pages := map[string]string{
		"home": "", "calls": "calls", "changes": "changes", "blocks": "ebs", "night": "night?date=" + time.Now().UTC().Format(time.DateOnly), "unknown": "ebs/eb-unknown",
	}
	definition, block := "sbds/"+week.ids(t, "/sbds/search?fields=id&limit=1&sort=-modified")[0], "ebs/"+week.failing(t)
	for name, at := range map[string]string{
		"found": "search?q=cen", "foundcalls": "search?q=ConnectionError", "running": "calls?at=" + week.busy(t), "lastnight": "night?date=" + time.Now().AddDate(0, 0, -1).UTC().Format(time.DateOnly), "emptynight": "night?date=2001-01-01",
		"block": block, "version": block + "?at=2999-01-01", "definitions": "sbds", "definition": definition, "compared": "compare?to=" + definition, "runs": "compare?to=" + block, "older": "changes?before=500&kind=sbds",
	} {
		week.picture(t, dir, "week-"+name, at)
	}
	for name, at := range pages {
		week.picture(t, dir, "week-"+name, at)
		none.picture(t, dir, "empty-"+name, at)
	}
	none.absurd(t)
	for _, at := range []string{
		"", "calls", "calls?outcome=failed", "changes", "night", "search?q=endless", "ebs", "ebs/eb-absurd", "sbds/sbd-absurd", "sbds/sbd-deep", "compare?from=sbds/sbd-deep&to=sbds/sbd-absurd", "compare?from=ebs/eb-absurd&to=ebs/eb-long",
	} {
		none.picture(t, dir, "absurd-"+strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(at), at)
	}
}

// The picture of a timeline in the README, of a made-up block. It is made if
// ODA_PICTURE names a file; scripts/screenshot does that.
func TestPictureOfATimeline(t *testing.T) {
	file := os.Getenv("ODA_PICTURE")
	if file == "" {
		t.Skip("ODA_PICTURE names no file for the picture")
	}
	s := emptySite(t)
	acting := func(user string) (*client.Client, error) { return client.New(s.URL(), client.WithUser(user)) }
	morning := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	must.Get(demo.Fill(t.Context(), acting, demo.Options{Seed: 3, Now: morning, Longest: 500}))(t)
	block, most := "", 0
	for day := range 8 {
		for _, b := range s.blocksOf(t, morning.AddDate(0, 0, -day)) {
			if b.Calls >= 100 && b.Calls < 300 && b.Failures > most {
				block, most = b.ID, b.Failures
			}
		}
	}
	ctx := env.Browser(t)
	scheme(t, ctx, "light")
	do(t, ctx, chromedp.EmulateViewport(1280, 860))
	showTimeline(t, ctx, s, block)
	call := evaluate[string](t, ctx, `document.querySelector("a[data-call]").dataset.call`)
	showTimeline(t, ctx, s, block+"?call="+call)
	picture := must.Get(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(t)
	must.Do(t, os.WriteFile(file, picture, 0o644))
}

// Pictures of what is happening now, in an archive that is busy, one that is quiet and one that
// is empty. They are made if ODA_PICTURES names a directory.
func TestPicturesOfNow(t *testing.T) {
	dir := os.Getenv("ODA_PICTURES")
	if dir == "" {
		t.Skip("ODA_PICTURES names no directory for the pictures")
	}
	busy, quiet, none := emptySite(t), newSite(t, ""), emptySite(t)
	busy.observes(t)
	ctx := env.Browser(t)
	busy.connected(t, ctx, "now")
	eventually(t, ctx, shown("li.silent", "silent since"))
	for name, s := range map[string]site{"busy": busy, "quiet": quiet, "none": none} {
		s.picture(t, dir, name+"-home", "")
		s.picture(t, dir, name+"-now", "now")
	}
	busy.picture(t, dir, "busy-block", "ebs/eb-mid")
	busy.picture(t, dir, "busy-low", "ebs/eb-low")
}

// absurd stores documents that nobody would, but that are allowed.
func (s site) absurd(t *testing.T) {
	t.Helper()
	long := strings.Repeat("endless", 40)
	now := time.Now().UTC()
	for at, body := range map[string]string{
		"sbds/sbd-absurd":                     `{"name":"` + strings.Repeat("Endless words ", 60) + `","telescope":"` + long + `","description":"` + long + `"}`,
		"sbds/" + long[:50]:                   `{"name":"` + long + `","targets":[{"name":"` + long + `","ra":1.5,"dec":-89.999}]}`,
		"prjs/prj-" + long[:40]:               `{"name":"اسم المشروع ✨🔭 项目","obs_blocks":[]}`,
		"ebs/eb-absurd":                       `{"telescope":"` + long + `","sbd_ref":"sbd-absurd","request_responses":[` + absurdCalls(now, long) + `]}`,
		"ebs/eb-nothing":                      `{"x":null}`,
		"ebs/eb-long":                         `{"request_responses":[` + strings.Repeat(absurdCalls(now, "m")+",", 20) + `{"request":"last"}]}`,
		"sbds/sbd-deep":                       strings.Repeat(`{"a":[`, 49) + "\"\\u00b0\u202ebottom\"" + strings.Repeat(`]}`, 49),
		"sbis/sbi-" + long[len(long)/2:][:30]: `{"sbd_ref":"` + long + `"}`,
	} {
		s.Must("PUT", "/"+at, body, "X-Forwarded-User", long[:64])
	}
	for at, status := range map[string]string{"sbds/sbd-absurd": strings.Repeat("words ", 10) + "word", "ebs/eb-absurd": long[:64], "ebs/eb-long": "Observing Failed"} {
		s.say(t, at, `{"status":"`+status+`","reason":"`+long+strings.Repeat(` words `, 200)+`"}`)
	}
}

// absurdCalls are calls without times, with equal times, in odd order, and with long
// texts.
func absurdCalls(now time.Time, long string) string {
	var calls []string
	for i := range 40 {
		at := now.Add(-time.Duration(i%7) * time.Hour).Format(time.RFC3339)
		calls = append(calls, fmt.Sprintf(`{"request":"%s.f%d","status":"%s","request_sent_at":"%s","response_received_at":"%s","error":{"detail":"%s"}}`, long, i, long, at, at, long))
		calls = append(calls, `{"request":"."}`)
	}
	return strings.Join(calls, ",")
}

// picture takes pictures of a page.
func (s site) picture(t *testing.T, dir, name, at string) {
	t.Helper()
	ctx := env.Browser(t)
	for width, height := range map[int64]int64{390: 844, 1440: 900, 2560: 1440} {
		for _, colours := range []string{"light", "dark"} {
			scheme(t, ctx, colours)
			do(t, ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(s.base+"/"+at))
			evaluate[bool](t, ctx, `new Promise((done) => setTimeout(() => done(true), 700))`)
			picture := must.Get(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(t)
			must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, colours)), picture, 0o644))
		}
	}
}
