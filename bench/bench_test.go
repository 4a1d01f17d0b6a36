package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == serveBare {
		fail(runBare(os.Args[2], os.Args[3:]...))
	}
	os.Exit(m.Run())
}

// tiny is a plan that only shows that every scenario runs, forwards and backwards.
var tiny = plan{
	warm: time.Millisecond, length: 10 * time.Millisecond, rounds: 1, busy: 4, lengths: []int{10, 100}, prepared: 100, longBlock: 100, nightBlocks: 3, nightRecords: 10,
	entities: 1000, records: 4000, versions: 20, past: 100, moved: 200, shares: []float64{0.5}, soak: 12 * time.Second,
}

// All scenarios take minutes, so only "make proof" runs them all.
func TestEveryScenarioRuns(t *testing.T) {
	list := scenarios()
	if os.Getenv("ODA_PROOF") == "" {
		list = named(t, "reading", "quiet")
	}
	// PostgreSQL's user cannot enter t.TempDir.
	dir, err := os.MkdirTemp("", "oda-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := options{
		settings: settings{plan: tiny, version: "test", progress: t.Output()},
		quick:    true, work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"),
	}
	l, err := newLab(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	found := runTiny(t, o, l, list)
	if len(found.Sections) != len(list) {
		t.Errorf("the results have %d of %d scenarios", len(found.Sections), len(list))
	}
	for _, s := range found.Sections {
		for _, b := range s.Budgets {
			elsewhere := strings.Contains(b.title(), pocketBase) || strings.Contains(b.Arm, at(100_000))
			if len(s.values(b)) == 0 && !elsewhere {
				t.Errorf("the budget of %s (%s, %s) was not measured", b.Work, b.Arm, b.title())
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(o.out, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, plotted := range []string{"lengths", "night", "soak"} {
		if !slices.ContainsFunc(list, func(sc scenario) bool { return sc.name == plotted }) {
			continue
		}
		plot := "benchmarks/" + plotted + ".svg"
		if !strings.Contains(string(page), "("+plot+")") {
			t.Errorf("the page does not show %s", plot)
		}
		if info, err := os.Stat(filepath.Join(o.out, plot)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", plot, info, err)
		}
	}

	t.Run("in turn with an earlier program", func(t *testing.T) {
		l.odas = append(l.odas, program{l.odas[0].path, " at v1"})
		o.against, o.out = "v1", filepath.Join(dir, "against")
		found := runTiny(t, o, l, named(t, "quiet"))
		if len(found.Sections) != 1 || len(found.Sections[0].Budgets) != 2 {
			t.Fatalf("got %+v", found.Sections)
		}
		for _, b := range found.Sections[0].Budgets {
			if ratio := found.Sections[0].values(b); len(ratio) != tiny.rounds || ratio[0] <= 0 {
				t.Errorf("%s, %s: %v", b.Work, b.Arm, ratio)
			}
		}
	})
}

// named returns the scenarios with these names.
func named(t *testing.T, names ...string) []scenario {
	t.Helper()
	list := slices.DeleteFunc(scenarios(), func(sc scenario) bool { return !slices.Contains(names, sc.name) })
	if len(list) != len(names) {
		t.Fatalf("not all of %q are scenarios", names)
	}
	return list
}

func runTiny(t *testing.T, o options, l *lab, list []scenario) *results {
	t.Helper()
	if err := o.measure(t.Context(), l, list); err != nil {
		t.Fatal(err)
	}
	found, err := readResults(filepath.Join(o.out, "benchmarks", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNewResultsReplaceOldOnes(t *testing.T) {
	all := &results{Sections: []*section{{Name: "gone"}, {Name: "recording", Version: "1"}, {Name: "scale", Version: "1"}}}
	all.add(&section{Name: "recording", Version: "2"}, &section{Name: "reading", Version: "2"})
	var got []string
	for _, s := range all.Sections {
		got = append(got, s.Name+s.Version)
	}
	if want := "reading2 recording2 scale1"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	s := section{Tables: []*table{{Series: []series{
		{Arm: "a", Rounds: map[figure][]float64{rate: {10, 30, 80}, p50: {6, 6, 12}}},
		{Arm: "a at v1", Rounds: map[figure][]float64{rate: {20, 30, 40}}},
		{Arm: "b", Rounds: map[figure][]float64{rate: {20, 10, 20}, p50: {1, 2, 3}}},
		{Arm: "c", Rounds: map[figure][]float64{p50: {2, 1, 1}}},
	}}}}
	for _, test := range []struct {
		column
		want spread
	}{
		{over(rate), spread{30, 10, 80}},
		{over(rate, "b"), spread{3, 0.5, 4}},
		{over(cost, "b"), spread{1. / 3, 0.25, 2}},
		{over(p50, "b", "c"), spread{2, 2, 3}},
		{over(rate, " at v1"), spread{1, 0.5, 2}},
		{over(rate, "not measured"), spread{}},
	} {
		if got := spreadOf(s.values(budget{Arm: "a", column: test.column})); got != test.want {
			t.Errorf("%s: got %v, want %v", test.title(), got, test.want)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "", "0"},
		{8, "", "8"},
		{0.7549, "", "0.755"},
		{1.2, "", "1.20"},
		{9.999, "", "10.00"},
		{99_960, "", "100,000"},
		{1_443_000, "", "1,440,000"},
		{0.000_088_6, "s", "88.6 µs"},
		{0.0335, "s", "33.5 ms"},
		{2, "s", "2 s"},
		{484, "B", "484 B"},
		{32 << 20, "B", "32 MiB"},
	} {
		if got := format(test.value, test.unit); got != test.want {
			t.Errorf("%v %s: %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestGrowthIsNoticed(t *testing.T) {
	soak := func(f figure, value func(i int) float64) (all []sample) {
		for i := range soakSamples {
			all = append(all, sample{f: value(i)})
		}
		return all
	}
	for name, test := range map[string]struct {
		samples []sample
		says    string
	}{
		"a leak of a goroutine now and then": {soak(goroutines, func(i int) float64 { return 60 + float64(i) }), "goroutines grew from"},
		"a leak of files":                    {soak(descriptors, func(i int) float64 { return 40 + float64(2*i) }), "open files grew from"},
		"a leak of memory":                   {soak(live, func(i int) float64 { return float64((20 + i + 4*(i%7)) << 20) }), "live heap without caches grew from"},
		"a process that takes it all":        {soak(memory, func(i int) float64 { return float64(12 * i << 20) }), "memory reached"},
		"a log that is not cut":              {soak(walSize, func(i int) float64 { return float64(2 * i << 20) }), "write-ahead log reached"},
		"complaints":                         {soak(lines, func(i int) float64 { return float64(i) * 20_000 }), "log of the server grew from"},
		"records that get dearer":            {soak(perWrite, func(i int) float64 { return float64(i) * 200 }), "on disk per write reached"},
		"memory that goes up and down":       {soak(live, func(i int) float64 { return float64((20 + 2*(i%9)) << 20) }), ""},
		"memory that is taken at first":      {soak(live, func(i int) float64 { return float64((20 + 4*min(i, soakSamples/3)) << 20) }), ""},
		"an archive at peace":                {soak(goroutines, func(i int) float64 { return 60 + float64(i%3) }), ""},
	} {
		err := grown(test.samples)
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// one sends GETs over one connection.
var one = []worker{{next: func() request { return get("/") }}}

func TestAtAConstantRateLatencyIsMeasuredFromWhenARequestWasDue(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(200 * time.Millisecond)
		}
	}))
	defer server.Close()
	got, err := send(t.Context(), server.Listener.Addr().String(), one, 200*time.Millisecond, 100)
	if err != nil {
		t.Fatal(err)
	}
	// All but the first were answered quickly, yet half of them had waited.
	if asked.Load() != 20 || got[p50] < 0.05 {
		t.Errorf("%d requests, %v", asked.Load(), got)
	}
}

func TestARefusalEndsAMeasurement(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := send(t.Context(), server.Listener.Addr().String(), one, time.Second, 0)
	if err == nil || !strings.Contains(err.Error(), "answered 503: too busy") {
		t.Errorf("got %v", err)
	}
}

func TestTheBareServerReadsAndWritesAsTheArchiveDoes(t *testing.T) {
	server := httptest.NewServer(bareHandler(func(context.Context, []byte) error { return nil }))
	defer server.Close()
	for _, test := range []struct{ method, body, want string }{
		{"GET", "", string(document("sbd-bare-00000000"))},
		{"PUT", `{"a":1}`, `{"a":1}`},
		{"POST", string(record(1)), recordAnswer},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v", test.method, got, err)
		}
	}
}

func TestDocumentsAreJSONOfTheRequestedSize(t *testing.T) {
	if got := documentOf("sbd-one-000000001"); len(got) != documentSize || !json.Valid(got) || !strings.Contains(string(got), `"sbd_id":"sbd-one-000000001"`) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	for _, i := range []int{0, 7_654_321} {
		if got := record(i); !json.Valid(got) || len(got) < 270 || len(got) > 300 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
}

func TestStolenProcessorTimeIsSeen(t *testing.T) {
	got := parseProcessorTime("cpu  100 10 50 7000 300 1 2 37 25 5\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if want := (processorTimes{used: 200, stolen: 37}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
