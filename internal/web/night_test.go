package web_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/web"
)

// A night without calls leads to the nearest ones with some.
func TestAnEmptyNightLeadsToOthers(t *testing.T) {
	for name, configure := range map[string]func(*app.Config){
		"sqlite":   func(*app.Config) {},
		"postgres": func(cfg *app.Config) { cfg.Database = env.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := emptySite(t, configure)
			nearest := func(at string) []string {
				t.Helper()
				page := s.get(t, at).Text()
				if !strings.Contains(page, "No calls were made that night") {
					t.Errorf("%s is not empty", at)
				}
				var dates []string
				for _, found := range regexp.MustCompile(`<a href="night\?date=(\S+?)(?:&amp;[^"]*)?">(\S+)</a>, (before|after) it`).FindAllStringSubmatch(page, -1) {
					dates = append(dates, found[3]+" "+found[1])
				}
				return dates
			}
			if got := nearest("night?date=2026-03-10"); got != nil {
				t.Errorf("in an empty archive, nights lead to %q", got)
			}
			sent := func(at string) string { return `{"request":"r","request_sent_at":"` + at + `"}` }
			s.storeCalls(t, "eb-1", []string{sent("2026-03-05T23:00:00Z"), sent("2026-03-10T11:59:59Z"), sent("2026-03-20T01:00:00Z")})
			s.store(t, "/ebs/eb-2", `{"telescope":"ska_low","request_responses":[`+sent("2026-03-21T13:00:00Z")+`]}`)
			for at, want := range map[string][]string{
				"night?date=2026-03-10":                           {"before 2026-03-09", "after 2026-03-19"},
				"night?date=2026-03-08":                           {"before 2026-03-05", "after 2026-03-09"},
				"night?date=2026-03-01":                           {"after 2026-03-05"},
				"night?date=2026-03-22":                           {"before 2026-03-21"},
				"night?date=2026-03-18&telescope=ska_low":         {"after 2026-03-21"},
				"night?date=2026-03-19&zone=Pacific/Kiritimati":   {"before 2026-03-10", "after 2026-03-20"},
				"night?date=2026-03-25&telescope=nothinglikethis": nil,
				"night?date=9999-12-30":                           {"before 2026-03-21"},
				"night?date=0001-01-01":                           {"after 2026-03-05"},
			} {
				got := nearest(at)
				for range 5 { // on a busy machine the time for hints may be up
					if cmp.Equal(got, want) {
						break
					}
					got = nearest(at)
				}
				if !cmp.Equal(got, want) {
					t.Errorf("%s leads to %q, want %q", at, got, want)
				}
			}
		})
	}
}

// The page of a night has what the report has, and leads to the nights around it.
func TestTheNight(t *testing.T) {
	s := newSite(t, "/ns/x")
	date := time.Now().UTC().AddDate(0, 0, -2)
	report := s.Do("GET", "/night?date="+date.Format(time.DateOnly), "").Text()
	page := s.get(t, "night?date="+date.Format(time.DateOnly)).Text()
	for _, id := range regexp.MustCompile(`"id":"(eb-[a-z0-9]+)"`).FindAllStringSubmatch(report, -1) {
		if !strings.Contains(page, `href="./ebs/`+id[1]) {
			t.Errorf("the page does not lead to %s", id[1])
		}
	}
	failures := regexp.MustCompile(`"failures":(\d+)`).FindStringSubmatch(report)[1]
	if !strings.Contains(page, `">`+failures+`</a></dd>`) {
		t.Errorf("the page does not say that %s calls failed", failures)
	}
	for _, day := range []int{-1, 1} {
		if around := date.AddDate(0, 0, day).Format(time.DateOnly); !strings.Contains(page, `href="night?date=`+around+`"`) {
			t.Errorf("the page does not lead to the night of %s", around)
		}
	}
	if wrong := s.get(t, "night?date=yesterday"); wrong.Status != http.StatusBadRequest || !strings.Contains(wrong.Text(), "is not a date") {
		t.Errorf("a wrong date answers %d", wrong.Status)
	}
}

// Without a date, the page is that of last night, as the command's report is. From noon on,
// it leads to the night that has just begun.
func TestTheNightIsTheLastOne(t *testing.T) {
	s := emptySite(t)
	for offset := -11; offset <= 12; offset++ {
		zone := fmt.Sprintf("Etc/GMT%+d", offset)
		place := must.Get(time.LoadLocation(zone))(t)
		query := "zone=" + strings.ReplaceAll(zone, "+", "%2B")
		now := time.Now().In(place)
		reply := s.get(t, "night?"+query)
		to := strings.TrimPrefix(reply.Header.Get("Location"), "./")
		last, tonight := s.get(t, to).Text(), s.get(t, "night?date="+now.Format(time.DateOnly)+"&"+query).Text()
		if time.Now().In(place).Hour() != now.Hour() {
			continue // perhaps it was noon or midnight just now
		}
		if want := "night?date=" + now.AddDate(0, 0, -1).Format(time.DateOnly) + "&" + query; reply.Status != http.StatusSeeOther || to != want {
			t.Errorf("at %s it answers %d and leads to %q, want %q", now, reply.Status, to, want)
		}
		begun := now.Hour() >= 12
		toTonight := `<a href="night?date=` + now.Format(time.DateOnly) + `&amp;` + query + `"><strong>Tonight, so far</strong></a>`
		if strings.Contains(last, toTonight) != begun || strings.Contains(last, ", so far</h1>") == begun {
			t.Errorf("at %s, last night has:\n%s", now, last)
		}
		if strings.Contains(tonight, "Tonight, so far") || strings.Contains(tonight, ", so far</h1>") != begun || !strings.Contains(tonight, `">Last night</a>`) {
			t.Errorf("at %s, tonight has:\n%s", now, tonight)
		}
	}
}

// A night lasts from noon to noon in the zone of its telescope, or of the archive, as the
// settings say.
func TestANightIsInTheZoneOfTheSettings(t *testing.T) {
	s := emptySite(t, func(c *app.Config) { c.Zones = []string{"Pacific/Kiritimati", "ska_low=Etc/GMT+12"} })
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false)})
	for at, want := range map[string]string{
		"night?date=2026-03-01":                   "noon to noon in Pacific/Kiritimati;",
		"night?date=2026-03-01&telescope=ska_low": "noon to noon in Etc/GMT&#43;12; ",
		"night?date=2026-03-01&zone=UTC":          `placeholder="Pacific/Kiritimati"`,
	} {
		s.says(t, at, want)
	}
	last := func(query string) string {
		return regexp.MustCompile(`date=(\d{4}-\d\d-\d\d)`).FindString(s.get(t, "night?"+query).Header.Get("Location"))
	}
	if east, west := last("telescope=ska_mid"), last("telescope=ska_low"); east <= west || west == "" {
		t.Errorf("last night was %q in the east, and 26 hours behind %q", east, west)
	}
	if at := s.get(t, "search?q=2026-03-01T03:00").Header.Get("Location"); !strings.Contains(at, "at=2026-02-28T13%3A00%3A00Z") {
		t.Errorf("a time leads to %s", at)
	}
}

// The links of a night keep its zone and its telescope, and in a zone the night begins on
// the date that is there.
func TestANightKeepsItsZone(t *testing.T) {
	s := emptySite(t)
	for i := range 201 {
		s.storeCalls(t, fmt.Sprint("eb-", i), []string{callIn("m.f", 0, 1, false)})
	}
	const zone = "zone=Africa/Johannesburg"
	for at, want := range map[string]string{
		"night?date=2026-03-05&telescope=ska_low&" + zone: `<a href="night?date=2026-03-05&amp;` + zone + `">Show all telescopes</a>`,
		"night?date=2026-03-01&telescope=ska_mid&" + zone: `and 1 more, in the <a href="./api/v1/night?date=2026-03-01&amp;telescope=ska_mid&amp;` + zone + `">`,
	} {
		s.says(t, at, want)
	}
	tonight := func(zone string) string {
		return regexp.MustCompile(`date=(\d{4}-\d\d-\d\d)`).FindString(s.get(t, "night?zone="+zone).Header.Get("Location"))
	}
	if east, west := tonight("Pacific/Kiritimati"), tonight("Etc/GMT%2B12"); east <= west || west == "" {
		t.Errorf("the night has %q in the east, and 26 hours behind %q", east, west)
	}
	if wrong := s.get(t, "night?date=2026-03-01&zone=Nowhere"); wrong.Status != http.StatusBadRequest {
		t.Errorf("a wrong zone answers %d", wrong.Status)
	}
	if wrong := s.get(t, "night?zone=Nowhere"); wrong.Status != http.StatusSeeOther {
		t.Errorf("a wrong zone without a date answers %d", wrong.Status)
	}
}

// A night is drawn from the hour of its first call, so that a phone shows it.
func TestANightIsDrawnFromItsFirstCall(t *testing.T) {
	s := emptySite(t)
	sent := func(at string) string { return `{"request":"r","request_sent_at":"` + at + `"}` }
	s.storeCalls(t, "eb-1", []string{sent("2026-03-05T12:10:00Z"), sent("2026-03-06T11:50:00Z")})
	s.storeCalls(t, "eb-2", []string{sent("2026-03-08T02:10:00Z"), sent("2026-03-08T10:30:00Z")})
	s.storeCalls(t, "eb-3", []string{sent("2026-03-10T11:30:00Z")})
	for date, want := range map[string][]string{
		"2026-03-05": {"12:00", "14:00", "16:00", "18:00", "20:00", "22:00", "00:00", "02:00", "04:00", "06:00", "08:00", "10:00", "12:00"},
		"2026-03-07": {"02:00", "03:00", "04:00", "05:00", "06:00", "07:00", "08:00", "09:00", "10:00", "11:00"},
		"2026-03-09": {"06:00", "07:00", "08:00", "09:00", "10:00", "11:00", "12:00"},
	} {
		var got []string
		for _, tick := range regexp.MustCompile(`<text(?: class="minor")? x="[\d.]+%" y="13">(\d\d:\d\d)</text>`).FindAllStringSubmatch(s.get(t, "night?date="+date).Text(), -1) {
			got = append(got, tick[1])
		}
		if !cmp.Equal(got, want) {
			t.Errorf("the night of %s is drawn with %q, want %q", date, got, want)
		}
	}
}

// Functions of the same name in different modules are told apart where they failed.
func TestFailuresAreToldApart(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-alike", []string{
		callIn("low.control.scan", 0, 1, true), callIn("mid.control.scan", 2, 3, true), callIn("mid.monitoring.scan", 4, 5, true), callIn("mid.control.track", 6, 7, true),
	})
	for at, marks := range map[string][]string{"ebs/eb-alike": {"span", "option"}, "night?date=2026-03-01": {"strong"}} {
		page := strings.ReplaceAll(s.get(t, at).Text(), "<wbr>", "")
		for _, name := range []string{"low.control.scan", "mid.control.scan", "monitoring.scan", "track"} {
			for _, mark := range marks {
				if !strings.Contains(page, `>`+name+`</`+mark+`>`) {
					t.Errorf("/%s does not say that %s failed", at, name)
				}
			}
		}
	}
}

// The bar of a block lasts until its last response, and a block that begins before lies
// below it.
func TestABarLastsUntilTheLastResponse(t *testing.T) {
	s := emptySite(t)
	call := func(sent, received string) string {
		return `{"request":"scan","request_sent_at":"` + sent + `","response_received_at":"` + received + `"}`
	}
	s.storeCalls(t, "eb-long", []string{call("2026-03-01T20:00:00Z", "2026-03-02T01:00:00Z"), call("2026-03-01T20:30:00Z", "2026-03-01T20:31:00Z")})
	s.storeCalls(t, "eb-short", []string{call("2026-03-01T21:00:00Z", "2026-03-01T21:00:01Z")})
	s.storeCalls(t, "eb-later", []string{call("2026-03-02T01:00:01Z", "2026-05-01T00:00:00Z")}) // longer than the night
	bars := map[string][]int{}
	for _, found := range regexp.MustCompile(`href="\./ebs/(\S+)" class="\S+"><title>.*</title><rect x="(\d+)" y="(\d+)" width="(\d+)"`).FindAllStringSubmatch(s.get(t, "night?date=2026-03-01").Text(), -1) {
		for _, number := range found[2:] {
			n := must.Get(strconv.Atoi(number))(t)
			bars[found[1]] = append(bars[found[1]], n)
		}
	}
	// From 20:00 to noon an hour is 69.375 wide.
	if want := map[string][]int{"eb-long": {90, 65, 346}, "eb-short": {159, 98, 3}, "eb-later": {436, 65, 764}}; !cmp.Equal(bars, want) {
		t.Errorf("the bars are at x, y and width %v, want %v", bars, want)
	}
}

// A share is rounded, but never to all or none.
func TestAShareIsAllOnlyIfNothingIsMissing(t *testing.T) {
	for _, test := range []struct {
		n, all int64
		want   string
	}{
		{3000, 3000, "100 %"},
		{2999, 3000, "> 99.9 %"},
		{9989, 10_000, "99.9 %"},
		{991, 1000, "99.1 %"},
		{1, 2, "50.0 %"},
		{1, 1000, "0.1 %"},
		{1, 3000, "< 0.1 %"},
		{0, 3000, "0 %"},
	} {
		if got := web.ShowShare(test.n, test.all); got != test.want {
			t.Errorf("%d of %d are %s, want %s", test.n, test.all, got, test.want)
		}
	}
}

// What failed is told by error, device and function, each with a link to its calls and to the
// first of them. The links find as many calls as they say.
func TestFailuresOfANightLeadToTheirCalls(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"First","targets":[{"name":"Cen A","ra":201.4,"dec":-43}]}`)
	call := func(function, device, kind, detail string, second int) string {
		return fmt.Sprintf(`{"request":"m.%s","request_args":{"kwargs":{"receptor":"%s"}},"status":"ERROR","error":{"detail":"%s: %s"},"request_sent_at":"2026-03-01T20:00:%02dZ"}`, function, device, kind, detail, second)
	}
	s.storeCalls(t, "eb-1", []string{
		callIn("m.fine", 0, 1, false), call("scan", "SKA001", "ConnectionError", "no route to host", 2), call("scan", "SKA002", "ConnectionError", "connection refused", 1),
		call("scan", "SKA001", "TimeoutError", "no answer", 3), callIn("m.scan", 4, 5, false),
	})
	s.store(t, "/ebs/eb-2", `{"sbd_ref":"sbd-1","request_responses":[`+call("track", "SKA001", "ConnectionError", "no route to host", 9)+`,{"request":"x","status":"ERROR","request_sent_at":"2026-03-01T20:00:10Z"}]}`)
	s.storeCalls(t, "eb-before", []string{strings.ReplaceAll(call("scan", "SKA001", "ConnectionError", "no route to host", 2), "03-01", "02-20")})
	page := s.get(t, "night?date=2026-03-01").Text()
	got := map[string][]string{}
	for _, table := range regexp.MustCompile(`(?s)<table class="failures (\w+)">.*?</table>`).FindAllStringSubmatch(page, -1) {
		for _, row := range strings.Split(table[0], "<tr>")[2:] {
			says := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.ReplaceAll(row, "<wbr>", ""), "")), " ")
			failed := regexp.MustCompile(`<td class="number bad">(\d+)`).FindStringSubmatch(row)[1]
			for _, link := range regexp.MustCompile(`href="(calls\?[^"]*)"`).FindAllStringSubmatch(row, -1) {
				list := s.get(t, html.UnescapeString(link[1])).Text()
				if rows := strings.Count(list, `data-name="Sent"`); strconv.Itoa(rows) != failed {
					t.Errorf("%s of %q leads to %d calls", link[1], says, rows)
				}
			}
			for _, link := range regexp.MustCompile(`href="\./(ebs/[^"]*)#timeline"`).FindAllStringSubmatch(row, -1) {
				says += " " + link[1]
			}
			got[table[1]] = append(got[table[1]], says)
		}
	}
	want := map[string][]string{
		"errors": {
			"ConnectionError no route to host 2 #2 of eb-1 ebs/eb-1?call=2", "(no error given) 1 #2 of Cen A ebs/eb-2?call=2",
			"ConnectionError connection refused 1 #3 of eb-1 ebs/eb-1?call=3", "TimeoutError no answer 1 #4 of eb-1 ebs/eb-1?call=4",
		},
		"devices":   {"SKA001 ConnectionError 3 #2 of eb-1 ebs/eb-1?call=2", "SKA002 ConnectionError 1 #3 of eb-1 ebs/eb-1?call=3"},
		"functions": {"scan 3 4", "track 1 1", "x 1 1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the failures (-want +got):\n%s", diff)
	}
	for i := range 30 {
		s.record(t, "eb-2", callIn(fmt.Sprint("m.g", i), 10, 11, true))
	}
	s.says(t, "night?date=2026-03-01", `The first 10 of 33;`, `<p class="printed">The first 5 of 33.</p>`)
}

// A call that took unusually long says how much longer, when it was made and in which block.
func TestUnusualCallsSayWhenAndWhere(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"telescope":"ska_mid","name":"First","targets":[{"name":"Centaurus A","ra":201.4,"dec":-43}]}`)
	calls := []string{callIn("m.scan", 61, 99, false)}
	for i := range 5 {
		calls = append(calls, callIn("m.read", float64(100+10*i), float64(102+10*i), false))
	}
	calls = append(calls, callIn("m.read", 200, 212.6, false))
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","sbd_ref":"sbd-1","request_responses":[`+strings.Join(calls, ",")+`]}`)
	page := s.get(t, "night?date=2026-03-01&zone=Africa/Johannesburg").Text()
	unusual := regexp.MustCompile(`(?s)<h2 id="unusual">.*?</table>`).FindString(page)
	for _, want := range []string{`href="./ebs/eb-1?call=7#timeline"`, "Centaurus A", "22:03:20", "20:03:20 UTC", "12.6 s", "6.3 × the usual 2.0 s"} {
		if !strings.Contains(unusual, want) {
			t.Errorf("the unusual call does not say %s:\n%s", want, unusual)
		}
	}
	if strings.Contains(unusual, ">scan") {
		t.Error("a scan is unusual because it is long")
	}
}

// A form of the night that cannot be read comes back with what was filled in, and says once
// what is wrong with it.
func TestAWrongNightCanBeMended(t *testing.T) {
	s := emptySite(t)
	for at, want := range map[string][]string{
		"night?date=2026-11-16&telescope=ska_low&zone=Mars": {`value="2026-11-16"`, `name="telescope" value="ska_low"`, `value="Mars"`, "is not the name of a time zone"},
		"night?date=2026-11-31&zone=Europe/Berlin":          {`value="2026-11-31"`, `value="Europe/Berlin"`, "is not a date"},
	} {
		reply := s.get(t, at)
		if reply.Status != http.StatusBadRequest {
			t.Errorf("%s answers %d", at, reply.Status)
		}
		for _, text := range want {
			if n := strings.Count(reply.Text(), text); n != 1 {
				t.Errorf("%s says %s %d times:\n%s", at, text, n, reply.Text())
			}
		}
	}
}

// A block of a night is red if its observation failed, whatever its calls did. Calls that
// failed are a mark of their own.
func TestABlockIsRedIfItsObservationFailed(t *testing.T) {
	s := emptySite(t)
	fine, wrong := callIn("m.f", 0, 1, false), callIn("m.f", 2, 3, true)
	for id, calls := range map[string][]string{"eb-silent": {fine}, "eb-well": {fine, wrong, wrong}, "eb-red": {fine, fine}, "eb-broken": {wrong}} {
		s.storeCalls(t, id, calls)
	}
	s.say(t, "ebs/eb-well", `{"status":"Observed"}`)
	s.say(t, "ebs/eb-red", `{"status":"Observing Failed"}`)
	s.storeCalls(t, "eb-alone", []string{`{"request":"r","status":"OK","request_sent_at":"2026-03-05T23:00:00Z"}`})

	page := s.says(t, "night?date=2026-03-01", "A red block with a cross failed", "a thin red mark below it has their number")
	bars := map[string]string{}
	for _, found := range regexp.MustCompile(`<a href="\./ebs/(\S+)"( class="[a-z0-9 ]*")?><title>.*</title>(.*)</a>`).FindAllStringSubmatch(page, -1) {
		bars[found[1]] = found[2] + regexp.MustCompile(`<rect|<path|class="calls"`).ReplaceAllString(strings.Join(regexp.MustCompile(`<rect|<path|class="calls"`).FindAllString(found[3], -1), ""), " $0")
	}
	want := map[string]string{
		"eb-silent": ` class="shade0" <rect`, "eb-well": ` class="status done shade4" <rect <rect class="calls"`, "eb-red": ` class="status failed shade0" <rect <path`, "eb-broken": ` class="shade4" <rect <rect class="calls"`,
	}
	if diff := cmp.Diff(want, bars); diff != "" {
		t.Errorf("the bars (-want +got):\n%s", diff)
	}
	if marks := regexp.MustCompile(`<text class="failures"[^>]*>(\d+)<`).FindAllStringSubmatch(page, -1); len(marks) != 2 || marks[0][1]+marks[1][1] != "12" && marks[0][1]+marks[1][1] != "21" {
		t.Errorf("the numbers of failed calls are %q", marks)
	}
	if rows := regexp.MustCompile(`<tr class="failed">\s*<td class="what"><a href="\./ebs/([^"]*)"`).FindAllStringSubmatch(page, -1); len(rows) != 1 || rows[0][1] != "eb-red" {
		t.Errorf("the red rows are %q", rows)
	}
	if other := s.get(t, "night?date=2026-03-05").Text(); strings.Contains(other, "A red block") {
		t.Error("a night in which nothing failed tells of red blocks")
	}
}

// The first and the last night of all lead to no night that there is not.
func TestTheFirstAndTheLastNightOfAll(t *testing.T) {
	s := emptySite(t)
	for date, want := range map[string][]string{"0001-01-01": {"0001-01-02"}, "9999-12-30": {"9999-12-29"}} {
		var got []string
		for _, found := range regexp.MustCompile(`<a href="night\?date=(\S+)" rel="(?:prev|next)"`).FindAllStringSubmatch(s.get(t, "night?date="+date).Text(), -1) {
			got = append(got, found[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the nights around %s (-want +got):\n%s", date, diff)
		}
	}
}

// A night that is not over has no calls so far.
func TestTonightHasNoCallsYet(t *testing.T) {
	s := emptySite(t)
	tonight := time.Now().UTC().Add(-12 * time.Hour).Format(time.DateOnly)
	for date, want := range map[string]string{tonight: "No calls have been made so far.", "2026-03-01": "No calls were made that night."} {
		s.says(t, "night?date="+date, want)
	}
}
