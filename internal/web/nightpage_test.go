package web_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The strip of a telescope says which part of each few minutes it was busy: calls that overlap
// count once, and what was done in observations that failed has a line above it.
func TestTheStripOfATelescope(t *testing.T) {
	s := emptySite(t)
	call := func(from, to string) string {
		return fmt.Sprintf(`{"request":"f","request_sent_at":"2026-03-01T%sZ","response_received_at":"2026-03-01T%sZ"}`, from, to)
	}
	// From 18:00, six hours are 1110 wide, so a step of 6 is 1 min 56.757 s.
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","request_responses":[`+strings.Join([]string{
		call("18:00:00", "18:01:00"), call("18:00:20", "18:00:50"), call("18:10:00", "18:20:00"), call("18:15:00", "18:19:00"), `{"request":"f","request_sent_at":"2026-03-01T18:21:00Z"}`,
	}, ",")+`]}`)
	s.store(t, "/ebs/eb-2", `{"telescope":"ska_mid","request_responses":[`+call("20:00:00", "20:00:01")+","+call("20:59:00", "21:00:00")+`]}`)
	s.say(t, "ebs/eb-2", `{"status":"Failed","reason":"the correlator was lost"}`)
	s.store(t, "/ebs/eb-3", `{"request_responses":[`+call("23:00:00", "23:30:00")+`]}`)
	page := s.says(t, "night?date=2026-03-01", "the correlator was lost")

	numbers := func(pattern string) (all [][]int) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
			var row []int
			for _, text := range found[1:] {
				row = append(row, must.Get(strconv.Atoi(text))(t))
			}
			all = append(all, row)
		}
		return all
	}
	type strip struct{ Idle, Busy, Lost [][]int }
	var busy [][]int
	for _, path := range regexp.MustCompile(`<path class="busy" d="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		steps, high := 0, 0
		for _, step := range regexp.MustCompile(`M\d+ \d+v-(\d+)h6`).FindAllStringSubmatch(path[1], -1) {
			steps, high = steps+1, high+must.Get(strconv.Atoi(step[1]))(t)
		}
		first := regexp.MustCompile(`^M(\d+) (\d+)v-(\d+)h6`).FindStringSubmatch(path[1])
		busy = append(busy, []int{must.Get(strconv.Atoi(first[1]))(t), must.Get(strconv.Atoi(first[3]))(t), steps, high})
	}
	want := strip{
		// SKA-Mid from its first call at 18:00 until its last at 20:59, and the one block without a telescope.
		Idle: [][]int{{90, 551}, {1015, 2}},
		// Where it begins and how high, how many steps, and their heights added up: 60 s of the first step are 9 of 18.
		Busy: [][]int{{90, 9, 10, 112}, {1014, 15, 16, 278}},
		Lost: [][]int{{460, 185}},
	}
	got := strip{numbers(`<rect class="idle" x="(\d+)" y="\d+" width="(\d+)"`), busy, numbers(`<rect class="lost" x="(\d+)" y="\d+" width="(\d+)"`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the strips (-want +got):\n%s", diff)
	}
}

// Blocks are called by the targets that their SBDefinition had in the version that ran, or by
// their names, or by their identifiers.
func TestBlocksAreCalledByTheirTargets(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"Plan","targets":[{"name":"Cen A","ra":201.4,"dec":-43},{"name":"<b>NGC 253","ra":12,"dec":-25}]}`)
	s.store(t, "/sbds/sbd-2", `{"name":"No <i>target"}`)
	sent := func(hour int) string {
		return fmt.Sprintf(`"request_responses":[{"request":"f","request_sent_at":"2026-03-01T%d:00:00Z","response_received_at":"2026-03-01T%d:30:00Z"}]`, hour, hour)
	}
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbd_version":1,`+sent(13)+`}`)
	s.store(t, "/sbds/sbd-1", `{"name":"Plan","targets":[{"name":"M 87","ra":187,"dec":12}]}`)
	s.store(t, "/ebs/eb-2", `{"telescope":"ska_mid","sbd_ref":"sbd-1",`+sent(15)+`}`)
	s.store(t, "/ebs/eb-3", `{"telescope":"ska_mid","sbd_ref":"sbd-2",`+sent(17)+`}`)
	s.store(t, "/ebs/eb-4", `{"telescope":"ska_mid",`+sent(19)+`}`)
	var got []string
	for _, label := range regexp.MustCompile(`<span class="label">(.*?)</span>`).FindAllStringSubmatch(s.get(t, "night?date=2026-03-01").Text(), -1) {
		got = append(got, label[1])
	}
	if want := []string{"Cen A, &lt;b&gt;NGC 253", "M 87", "No &lt;i&gt;target", "eb-4"}; !cmp.Equal(got, want) {
		t.Errorf("the blocks are called %q, want %q", got, want)
	}
}

// The axis and the tables are in the zone of the night, with UTC beside it. The night of a
// telescope is that of its own zone.
func TestTheTimesOfANightAreThoseOfItsZone(t *testing.T) {
	s := emptySite(t, func(cfg *app.Config) { cfg.Zones = []string{"Africa/Johannesburg", "ska_low=Australia/Perth"} })
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_low","request_responses":[{"request":"f","request_sent_at":"2026-03-01T05:00:00Z"}]}`)
	for at, want := range map[string][]string{
		"night?date=2026-03-01&telescope=ska_low": {
			"From 2026-03-01 12:00 to 2026-03-02 12:00, noon to noon in Australia/Perth; 2026-03-01 04:00 to 2026-03-02 04:00 UTC",
			`y="13">13:00</text>`, `y="27">05:00</text>`, ">AWST</text>", `<span class="clock">13:00:00 <span class="extra">05:00:00 UTC</span></span>`, "Times are those of Australia/Perth, and UTC beside them.",
		},
		"night?date=2026-02-28":          {"noon to noon in Africa/Johannesburg;", `<span class="clock">07:00:00 <span class="extra">05:00:00 UTC</span></span>`, ">SAST</text>"},
		"night?date=2026-02-28&zone=UTC": {"noon to noon in UTC</p>", `<span class="clock">05:00:00</span>`, ">UTC</text>", "Times are those of UTC."},
	} {
		s.says(t, at, want...)
	}
}

// The strip of the weeks says of each night how many calls it has and how many failed.
func TestTheWeeksAroundANight(t *testing.T) {
	s := emptySite(t)
	noon := time.Now().UTC().Add(-12 * time.Hour).Truncate(24 * time.Hour).Add(12 * time.Hour) // of tonight
	at := func(nights int) string {
		return fmt.Sprintf(`{"request":"f","status":"%s","request_sent_at":"%s"}`, []string{"OK", "ERROR"}[-nights%2], noon.AddDate(0, 0, nights).Add(-time.Second).Format(time.RFC3339))
	}
	s.storeCalls(t, "eb-1", []string{at(-3), at(-3), at(-4), at(-40)})
	s.store(t, "/ebs/eb-low", `{"telescope":"ska_low","request_responses":[`+at(-4)+`]}`)
	date := func(nights int) string { return noon.AddDate(0, 0, nights).Format(time.DateOnly) }
	for asked, want := range map[string][]string{
		"night?date=" + date(-4):                        {date(-27), date(0), date(-5) + ": 2 calls, 0 failed", date(-4) + ": 2 calls, 2 failed"},
		"night?date=" + date(-4) + "&telescope=ska_low": {date(-27), date(0), date(-5) + ": 1 call, 0 failed"},
		"night?date=" + date(-41):                       {date(-55), date(-28), date(-41) + ": 1 call, 0 failed"},
	} {
		page := s.get(t, asked).Text()
		var got []string
		nights := regexp.MustCompile(`<li><a href="(night[^"]*)" title="([^"]*)"`).FindAllStringSubmatch(page, -1)
		if len(nights) != 28 {
			t.Fatalf("%s has %d nights", asked, len(nights))
		}
		for i, night := range nights {
			says, empty := strings.CutSuffix(night[2], ": no calls")
			if !strings.Contains(night[1], "date="+says[:10]) {
				t.Errorf("%s of %s leads to %s", says, asked, night[1])
			}
			if i == 0 || i == 27 || !empty {
				got = append(got, says)
			}
		}
		got = append([]string{got[0], got[len(got)-1]}, got[1:len(got)-1]...)
		if !cmp.Equal(got, want) {
			t.Errorf("%s has %q, want %q", asked, got, want)
		}
		if strings.Contains(asked, "telescope") && !strings.Contains(nights[0][1], "telescope=ska_low") {
			t.Errorf("a night of one telescope leads to %s", nights[0][1])
		}
	}
}

// The shift log is a link, and with JavaScript a button that copies it.
func TestTheShiftLogIsCopied(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, true)})
	s.says(t, "night?date=2026-03-01", `<a href="night/log?date=2026-03-01" data-copy-from="Copy as shift log">`)
	log := s.get(t, "night/log?date=2026-03-01")
	if log.Header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(log.Text(), "# Night of 2026-03-01\n") {
		t.Errorf("the shift log is of type %s:\n%s", log.Header.Get("Content-Type"), log.Text())
	}
	if got := s.Do("GET", "/night?date=2026-03-01", "", "Accept", "text/markdown").Text(); got != log.Text() {
		t.Errorf("the interface has another shift log:\n%s", got)
	}
	if wrong := s.get(t, "night/log"); wrong.Status != http.StatusBadRequest {
		t.Errorf("without a date it answers %d", wrong.Status)
	}
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/night?date=2026-03-01"))
	evaluate[bool](t, ctx, `navigator.clipboard.writeText = async (text) => { window.copied = text; }, true`)
	do(t, ctx, chromedp.Click(chromedp.CSS(`.log .copy`)))
	eventually(t, ctx, `document.querySelector(".log .copy").textContent === "Copied"`)
	if got := evaluate[string](t, ctx, `copied`); got != log.Text() {
		t.Errorf("what is copied is\n%s", got)
	}
}

// The page of tonight goes on by itself: after midnight, when the first call comes, and when
// the archive was away. It has a line for now.
func TestTonightMoves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, "/ns/x", file, "127.0.0.1:0")
	s.Must("PUT", "/ebs/eb-1", `{"telescope":"ska_mid"}`)
	ctx := env.Browser(t)
	hour := time.Now().UTC().Hour() // where it is midnight, or just past it
	zone := fmt.Sprintf("Etc/GMT%+d", hour)
	if hour > 12 {
		zone = fmt.Sprintf("Etc/GMT%+d", hour-24)
	}
	s.connected(t, ctx, "night?zone="+strings.ReplaceAll(zone, "+", "%2B"))
	shows(t, ctx, "main", "so far", "No calls have been made so far")
	evaluate[bool](t, ctx, `window.same = true`)
	record := func(failed bool) {
		s.Must("POST", "/ebs/eb-1/request_response", fmt.Sprintf(`{"request":"scan","status":"%s","request_sent_at":"%s"}`, map[bool]string{true: "ERROR", false: "OK"}[failed], time.Now().UTC().Format(time.RFC3339Nano)))
	}
	calls := func(n int) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".numbers div")].some((e) => e.textContent === "Calls%d")`, n)
	}
	record(false)
	eventually(t, ctx, calls(1)+` && document.querySelector(".plot path.now") !== null`)
	record(true)
	eventually(t, ctx, calls(2)+` && document.querySelector("#functions") !== null`)
	address := s.Addr()
	must.Do(t, s.Stop())
	eventually(t, ctx, shown(".live", "Not connected"))
	s = open(t, "/ns/x", file, address)
	record(false)
	eventually(t, ctx, calls(3))
	if !evaluate[bool](t, ctx, `window.same`) {
		t.Error("the page was loaded again")
	}
	// Time passes without calls, too. Nobody waits half a minute for that here.
	if every := evaluate[string](t, ctx, `document.querySelector("#night").dataset.every`); every != "30" {
		t.Errorf("without changes the page is read again every %q seconds", every)
	}
}

// A night with many blocks of many telescopes, overlapping ones, one without a telescope and
// hostile names fits every screen, can be used and harms nobody.
func TestABusyNightCanBeUsed(t *testing.T) {
	s := emptySite(t)
	hostile := `<script>alert(1)</script>\" onload=\"alert(1) \u202e` + strings.Repeat("endless", 20)
	s.store(t, "/sbds/sbd-hostile", `{"name":"`+hostile+`","targets":[{"name":"`+hostile+`","ra":1,"dec":2}]}`)
	begin := time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	for i := range 100 {
		telescope := []string{`"ska_mid"`, `"ska_low"`, `"` + hostile + `"`, `"third"`, `null`}[i%5]
		at := func(minutes int) string {
			return begin.Add(time.Duration(4*i+minutes) * time.Minute).Format(time.RFC3339)
		}
		s.store(t, fmt.Sprint("/ebs/eb-", i), fmt.Sprintf(`{"telescope":%s,"sbd_ref":"sbd-hostile","request_responses":[{"request":"%s","status":"%s","error":%s,"request_args":{"kwargs":{"receptor":"%s"}},"request_sent_at":"%s","response_received_at":"%s"}]}`,
			telescope, hostile, []string{"OK", "ERROR"}[i%2], []string{"null", `{"detail":"` + hostile + `"}`}[i%2], hostile, at(0), at(30)))
		if i%7 == 0 {
			s.say(t, fmt.Sprint("ebs/eb-", i), `{"status":"Failed","reason":"`+hostile+`"}`)
		}
	}
	ctx := env.Browser(t)
	s.mustBeSound(t, ctx, "night?date=2026-03-01&zone=Australia/Perth")
	mustBeUsable(t, ctx, "light") // the tour has nights in both schemes
	if lanes := evaluate[int](t, ctx, `document.querySelectorAll(".plot .busy").length`); lanes != 5 {
		t.Errorf("%d telescopes are drawn", lanes)
	}
}
