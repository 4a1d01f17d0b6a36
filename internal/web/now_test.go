package web_test

import (
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// begin says that a call is in progress, with what else is said of it.
func (s site) begin(t *testing.T, block, key, more string) {
	t.Helper()
	if answer := s.Do("PUT", "/ebs/"+block+"/running/"+key, `{"request":`+more+`}`); answer.Status != 204 {
		t.Fatalf("%s in %s cannot begin: %d %s", key, block, answer.Status, answer.Body)
	}
}

// ago is a time, as long ago as it says.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }

// minuteCalls are calls of the last so many minutes, one each, and the last so many of them failed.
func minuteCalls(request string, minutes, failed int) string {
	var calls []string
	for i := range minutes {
		since := time.Duration(minutes-i) * time.Minute
		problem := ""
		if i >= minutes-failed {
			problem = `,"status":"ERROR","error":{"detail":"ConnectionError: the correlator does not answer"}`
		}
		calls = append(calls, fmt.Sprintf(`{"request":%q,"request_args":{"kwargs":{"device":"SKA%03d"}},"request_sent_at":%q,"response_received_at":%q%s}`,
			request, i%60+1, ago(since), ago(since-20*time.Second), problem))
	}
	return strings.Join(calls, ",")
}

// observes makes telescopes busy: Mid is in a scan, Low is in a call that has lasted much too
// long, beside one that is silent.
func (s site) observes(t *testing.T) {
	t.Helper()
	s.store(t, "/sbds/sbd-a", `{"name":"Sagittarius A* in band 1","telescope":"ska_mid","targets":[{"name":"Sgr A*","ra":266.4,"dec":-29}]}`)
	s.store(t, "/sbds/sbd-b", `{"name":"EoR field 2, deep","telescope":"ska_low"}`)
	s.store(t, "/ebs/eb-before", `{"telescope":"ska_mid","sbd_ref":"sbd-a","request_responses":[`+minuteCalls("control.scan", 90, 60)+`]}`)
	s.say(t, "ebs/eb-before", `{"status":"Observing Failed","at":"`+ago(45*time.Minute)+`"}`)
	s.store(t, "/ebs/eb-mid", `{"telescope":"ska_mid","sbd_ref":"sbd-a","request_responses":[`+minuteCalls("control.scan", 20, 3)+`]}`)
	s.say(t, "ebs/eb-mid", `{"status":"Executing"}`)
	s.begin(t, "eb-mid", "scan", `"control.scan","request_args":{"kwargs":{"device":"SKA001"}},"request_sent_at":"`+ago(12*time.Second)+`"`)
	s.store(t, "/ebs/eb-low", `{"telescope":"ska_low","sbd_ref":"sbd-b","request_responses":[`+minuteCalls("control.configure", 30, 0)+`]}`)
	s.begin(t, "eb-low", "configure", `"control.configure","request_args":{"kwargs":{"device":"low-cbf/subarray/01"}},"request_sent_at":"`+ago(7*time.Minute)+`","lease_seconds":3600`)
	s.begin(t, "eb-low", "point", `"control.point","request_sent_at":"`+ago(3*time.Minute)+`","lease_seconds":5`)
}

// What each telescope does is on Home and on the wall: its block, the calls in progress, those
// that take much longer than usual, those that are silent, and what failed. All of it can be
// seen at once, and used by everybody.
func TestWhatTheTelescopesAreDoing(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1920, 1080))
	s.connected(t, ctx, "now")
	shows(t, ctx, "main", "There is nothing in this archive yet")
	s.store(t, "/ebs/eb-none", `{}`)
	eventually(t, ctx, shown("#blocks .id", "eb-none")) // no telescope is known
	s.observes(t)
	eventually(t, ctx, shown("li.silent .what", "point")+` && document.querySelectorAll(".telescopes > li").length === 2 && document.querySelector(".tonight .plot") && !document.querySelector("#blocks")`)
	for _, at := range []string{"", "now"} {
		s.connected(t, ctx, at)
		eventually(t, ctx, `/^\d+ (s|min \d+ s)$/.test(document.querySelector(".going .how strong").textContent)`)
		shows(t, ctx, ".telescopes > li:nth-child(1)", "SKA-Low", "EoR field 2, deep", "configure on low-cbf/subarray/01", "7 min", "usually 20.0 s: much longer", "point", "silent since", "No failed calls since noon")
		shows(t, ctx, ".telescopes > li:nth-child(2)", "SKA-Mid", "Sagittarius A* in band 1", "Executing", "scan on SKA001", "failed calls since noon", "ConnectionError")
		shows(t, ctx, ".health", "Reading and writing work")
		if long := evaluate[string](t, ctx, `[...document.querySelectorAll(".long .what strong")].map((e) => e.textContent).join()`); long != "configure" {
			t.Errorf("/%s marks %q as much longer than usual", at, long)
		}
		mustBeUsable(t, ctx, "light", "dark")
	}
	if over := evaluate[int](t, ctx, `document.documentElement.scrollHeight - innerHeight`); over > 0 {
		t.Errorf("the wall display is %d higher than the screen", over)
	}
	// The numbers lead to the calls.
	for _, link := range regexp.MustCompile(`<a class="failed" href="([^"]+)">(\d+) failed calls</a>`).FindAllStringSubmatch(s.get(t, "").Text(), -1) {
		found := s.Must("GET", "/"+strings.TrimPrefix(html.UnescapeString(link[1]), "./")+"&limit=1000", "").Text()
		if n := strings.Count(found, `"sequence"`); fmt.Sprint(n) != link[2] {
			t.Errorf("%s leads to %d calls, want %s", link[1], n, link[2])
		}
	}
	noComplaints(t, ctx, watch)
}

// A script is at a call: it says so again and again as its recorder would, until it is killed or
// has an answer.
type script struct {
	end  chan struct{}
	done sync.WaitGroup
}

// runScript starts a script at a call.
func runScript(t *testing.T, s *atomic.Pointer[site], block, call string) *script {
	c := &script{end: make(chan struct{})}
	c.done.Go(func() {
		for {
			_, _ = s.Load().Try("PUT", "/ebs/"+block+"/running/"+call, `{"request":"control.`+call+`","lease_seconds":5}`)
			select {
			case <-c.end:
				return
			case <-time.After(1700 * time.Millisecond):
			}
		}
	})
	t.Cleanup(c.kill)
	return c
}

// kill ends the script without a word.
func (c *script) kill() {
	select {
	case <-c.end:
	default:
		close(c.end)
	}
	c.done.Wait()
}

// A script that hangs, one that is killed, and one that runs through an outage of the archive are
// shown as what they are.
func TestScriptsOnTheWall(t *testing.T) {
	t.Parallel() // it mostly waits
	file := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, "/ns/x", file, "127.0.0.1:0")
	address := s.Addr()
	var now atomic.Pointer[site]
	now.Store(&s)
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","request_responses":[`+strings.ReplaceAll(minuteCalls("control.hangs", 8, 0), "20s", "")+`]}`)
	ctx := env.Browser(t)
	s.connected(t, ctx, "now")
	hangs, killed := runScript(t, &now, "eb-1", "hangs"), runScript(t, &now, "eb-1", "killed")
	eventually(t, ctx, shown(".going strong", "hangs")+" && "+shown(".going strong", "killed"))
	killed.kill()
	eventually(t, ctx, shown(".silent strong", "killed")+" && "+shown(".going strong", "hangs"))
	through := runScript(t, &now, "eb-1", "through")
	eventually(t, ctx, shown(".going strong", "through"))

	must.Do(t, s.Stop())
	eventually(t, ctx, shown(".lost", "Not connected"))
	if says := evaluate[string](t, ctx, `document.querySelector(".health").innerText`); strings.Contains(says, "work") {
		t.Errorf("beside that it is not connected, the page says %q", says)
	}
	s = open(t, "/ns/x", file, address)
	// What was said before an outage is forgotten, and scripts that go on say it again.
	eventually(t, ctx, shown(".going strong", "through")+" && "+shown(".going strong", "hangs")+" && !("+shown("main", "killed")+") && "+shown(".health", "Reading and writing work")+` && document.querySelector(".lost").textContent === ""`)
	through.kill()
	s.Must("POST", "/ebs/eb-1/request_response", `{"request":"control.through","status":"OK"}`, "Idempotency-Key", "through")
	eventually(t, ctx, "!("+shown("main", "through")+")")
	hangs.kill()
}

// Two processes on one PostgreSQL show the same.
func TestTwoProcessesShowTheSame(t *testing.T) {
	database := env.Postgres(t)
	one, other := emptySite(t, func(cfg *app.Config) { cfg.Database = database }), emptySite(t, func(cfg *app.Config) { cfg.Database = database })
	one.observes(t)
	shows := func(s site) string {
		return words(s.get(t, "now").Text(), `<ul class="telescopes">`, `<div class="tonight">`)
	}
	env.Await(t, "a silent call, and the night", func() bool {
		return strings.Contains(shows(one), "silent since") && strings.Contains(shows(one), "failed calls since noon") && strings.Contains(shows(other), "failed calls since noon")
	})
	if a, b := shows(one), shows(other); a != b {
		t.Errorf("one process shows\n%s\nthe other\n%s", a, b)
	}
}

// A call that has begun is on the page within a second.
func TestACallIsSeenSoon(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid"}`)
	ctx := env.Browser(t)
	s.connected(t, ctx, "")
	var all []time.Duration
	for i := range 5 {
		time.Sleep(1500 * time.Millisecond) // calls that are announced take longer than a second
		name := fmt.Sprint("call", i)
		evaluate[bool](t, ctx, `window.seen = new Promise((done) => {
			const look = () => `+shown(".going strong", name)+` ? done(Date.now()) : requestAnimationFrame(look);
			look();
		}), true`)
		s.begin(t, "eb-1", name, `"control.`+name+`"`)
		said := time.Now()
		all = append(all, time.UnixMilli(evaluate[int64](t, ctx, `seen`)).Sub(said))
		must.Get(s.Try("DELETE", "/ebs/eb-1/running/"+name, ""))(t)
	}
	t.Logf("they were seen after %v", all)
	if latest := slices.Max(all); latest > env.AtMost(time.Second) {
		t.Errorf("a call is seen %v after it was announced", latest)
	}
}

// A display whose person is not signed in any more says so.
func TestAWallDisplaySaysThatItsSessionHasEnded(t *testing.T) {
	t.Parallel() // it mostly waits
	s, _ := newTokenSite(t)
	token := s.visitorToken(t, 8*time.Second)
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/now"))
	enterToken(t, ctx, token)
	eventually(t, ctx, `document.querySelector(".ended") && document.documentElement.matches(".wall.out-of-date") && !document.querySelector("#works").checkVisibility()`)
}

// wallTime is how long a wall display is watched in "make proof", in which all changes of a
// day come.
const wallTime = "WALLTIME"

// A wall display survives the night: while what a day brings comes in a short time, the archive
// is restarted, connections are reset and the line is cut, and afterwards it shows what is
// so, and has grown neither in memory nor in elements, listeners, connections or timers.
func TestAWallDisplaySurvivesTheNight(t *testing.T) {
	t.Parallel() // it mostly waits
	long := 25 * time.Second
	ctx := env.Browser(t)
	if env.InProof() {
		long = env.Length(t, wallTime, time.Hour)
		ctx, _ = env.BrowserWithLog(t) // without a limit of time
	}
	file := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, "/ns/x", file, "127.0.0.1:0")
	address := s.Addr()
	line := must.Get(fault.NewProxy(address))(t)
	t.Cleanup(func() { _ = line.Close() })
	before(t, ctx, `{
		window.timers = new Set();
		const [set, clear] = [setTimeout, clearTimeout];
		window.setTimeout = (what, time, ...more) => {
			const timer = set(() => { timers.delete(timer); what(...more); }, time);
			timers.add(timer);
			return timer;
		};
		window.clearTimeout = (timer) => { timers.delete(timer); clear(timer); };
		window.intervals = 0;
		const every = setInterval;
		window.setInterval = (...all) => { intervals++; return every(...all); };
	}`)
	do(t, ctx, chromedp.EmulateViewport(1920, 1080), chromedp.Navigate("http://"+line.Addr()+"/ns/x/now"))
	eventually(t, ctx, `document.querySelector("[data-connected]")?.dataset.connected === "true"`)

	type size struct{ Heap, Nodes, Listeners, Timers, Intervals int64 }
	measure := func() size {
		must.Get(chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}))(t)
		counters := must.Get(chromedp.Call(ctx, memory.GetDOMCounters, cdp.Empty{}))(t)
		heap := must.Get(chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{}))(t)
		return size{int64(heap.UsedSize), counters.Nodes, counters.JsEventListeners, evaluate[int64](t, ctx, `timers.size`), evaluate[int64](t, ctx, `intervals`)}
	}

	// A day has 7,200 batches of calls, one each twelve seconds, 900 calls that are announced, and
	// 30 blocks.
	const batches, perCall, perBlock = 7200, 8, 240
	step := max(long/batches, 100*time.Millisecond)
	rounds := int(long / step)
	faults := map[int]func(){
		rounds * 4 / 10: func() { line.CutAll() },
		rounds * 5 / 10: func() { // a restart
			must.Do(t, s.Stop())
			eventually(t, ctx, shown(".lost", "Not connected")+` && !document.querySelector("#works").checkVisibility()`)
			s = open(t, "/ns/x", file, address)
		},
		rounds * 7 / 10: func() { // a cable is cut, and nobody is told
			line.Stall(true)
			eventually(t, ctx, shown(".lost", "Not connected")+` && document.documentElement.matches(".out-of-date")`)
			line.Stall(false)
		},
	}
	var first size
	block, began := "", time.Now()
	for n := range rounds {
		if n%perBlock == 0 {
			if block != "" {
				s.say(t, "ebs/"+block, `{"status":"Observed"}`)
			}
			block = fmt.Sprint("eb-", n)
			s.store(t, "/ebs/"+block, fmt.Sprintf(`{"telescope":%q}`, []string{"ska_mid", "ska_low"}[n/perBlock%2]))
			s.say(t, "ebs/"+block, `{"status":"Executing"}`)
		}
		if n%perCall == 0 {
			s.begin(t, block, fmt.Sprint("k", n), `"control.scan"`)
		}
		key := ""
		if n%perCall == perCall-1 {
			key = fmt.Sprint("k", n-perCall+1)
		} else {
			key = fmt.Sprint("r", n)
		}
		s.Must("POST", "/ebs/"+block+"/request_response", fmt.Sprintf(`{"request":"control.scan","request_sent_at":%q,"response_received_at":%q,"status":%q}`,
			ago(time.Second), ago(0), []string{"OK", "ERROR"}[n%50/49]), "Idempotency-Key", key)
		if fault := faults[n]; fault != nil {
			fault()
		}
		if n == rounds/5 {
			first = measure()
		}
		if n%1000 == 999 {
			t.Logf("after %d batches: %+v", n+1, measure())
		}
		time.Sleep(time.Until(began.Add(time.Duration(n+1) * step)))
	}
	s.begin(t, block, "last", `"control.last_of_all"`)
	eventually(t, ctx, shown(".going strong", "last_of_all")+` && document.querySelector("[data-connected]").dataset.connected === "true" && document.querySelector("#works").checkVisibility() && !document.documentElement.matches(".out-of-date")`)
	s.AwaitFollowers(2) // of changes, and of what is running
	last := measure()
	t.Logf("%d batches in %v: first %+v, last %+v", rounds, long, first, last)
	if last.Heap > first.Heap*5/4+3<<20 || last.Nodes > first.Nodes*3/2+300 || last.Listeners > first.Listeners+20 || last.Timers > 10 || last.Intervals != first.Intervals {
		t.Errorf("the display grows: from %+v to %+v", first, last)
	}
}
