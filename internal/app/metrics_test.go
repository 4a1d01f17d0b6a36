package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// scrape is what /metrics shows.
type scrape struct {
	text    string
	types   map[string]string              // of metrics
	labels  map[string]map[string][]string // of metrics, with the values of each label
	samples map[string]float64             // as they are written, such as a{b="c"}
}

var (
	sampleLine = regexp.MustCompile(`^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	ofAPart    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func readScrape(t *testing.T, text string) *scrape {
	t.Helper()
	s := &scrape{text: text, types: map[string]string{}, labels: map[string]map[string][]string{}, samples: map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" {
			s.types[words[2]] = words[3]
			s.labels[words[2]] = map[string][]string{}
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := sampleLine.FindStringSubmatch(line)
		if parts == nil {
			t.Fatalf("a line of the scrape cannot be read: %q", line)
		}
		value := must.Get(strconv.ParseFloat(parts[3], 64))(t)
		s.samples[strings.TrimSuffix(line, " "+parts[3])] = value
		name := parts[1]
		if s.types[name] == "" {
			name = ofAPart.ReplaceAllString(name, "")
		}
		for _, pair := range labelPair.FindAllStringSubmatch(parts[2], -1) {
			if all := s.labels[name]; pair[1] != "le" && !slices.Contains(all[pair[1]], pair[2]) {
				all[pair[1]] = append(all[pair[1]], pair[2])
			}
		}
	}
	return s
}

// want fails the test unless a sample has a value.
func (s *scrape) want(t *testing.T, sample string, value float64) {
	t.Helper()
	if got, ok := s.samples[sample]; !ok || got != value {
		t.Errorf("%s is %v (there: %v), want %v", sample, got, ok, value)
	}
}

// counted is what the metrics tell after worked.
var counted = map[string]float64{
	`oda_http_requests_total{operation="getSBD",status="2xx"}`:                            2,
	`oda_http_requests_total{operation="getSBD",status="4xx"}`:                            1,
	`oda_http_requests_total{operation="getSBD",status="5xx"}`:                            0,
	`oda_http_requests_total{operation="recordBatch",status="2xx"}`:                       1,
	`oda_http_requests_total{operation="other",status="4xx"}`:                             2,
	`oda_http_requests_total{operation="page",status="2xx"}`:                              1,
	`oda_http_request_duration_seconds_count{operation="getSBD",status="2xx"}`:            2,
	`oda_http_request_duration_seconds_bucket{operation="getSBD",status="2xx",le="+Inf"}`: 2,
	`oda_problems_total{problem="not-found"}`:                                             1,
	`oda_problems_total{problem="no-such-path"}`:                                          1,
	`oda_problems_total{problem="unauthenticated"}`:                                       0,
	`oda_admission_refused_total{class="recording"}`:                                      0,
	`oda_commit_duration_seconds_count`:                                                   7,
	`oda_commit_requests_sum`:                                                             7,
	`oda_commit_requests_bucket{le="1"}`:                                                  7,
	`oda_commit_failures_total`:                                                           0,
	`oda_feed_position`:                                                                   7,
	`oda_feed_followers`:                                                                  1,
	`oda_feed_followers_limit`:                                                            4096,
	`oda_identifier_duration_seconds_count{source="archive"}`:                             1,
	`oda_entities{kind="sbds"}`:                                                           2,
	`oda_entities{kind="ebs"}`:                                                            2,
	`oda_recorders`:                                                                       2,
	`oda_recorder_lag_records`:                                                            17,
	`oda_recorder_lag_seconds`:                                                            3.5,
	`oda_ready`:                                                                           1,
}

// has reports whether the scrape tells all of it.
func (s *scrape) has(all map[string]float64) bool {
	for sample, value := range all {
		if s.samples[sample] != value {
			return false
		}
	}
	return true
}

// worked starts an archive and lets it do a little of everything. A request is counted
// just after it is answered, so worked looks again until the last is.
func worked(t *testing.T, configure func(*app.Config)) *scrape {
	t.Helper()
	a := env.Start(t, configure)
	record := `{"request":"scan","status":"OK"}`
	for _, r := range [][]string{
		{"200", "PUT", "/sbds/sbd-secret", `{}`, "X-Forwarded-User", "nobody-knows"},
		{"200", "GET", "/sbds/sbd-secret", ""},
		{"200", "GET", "/sbds/sbd-secret", ""},
		{"404", "GET", "/sbds/sbd-other", ""},
		{"200", "POST", "/prjs", `{}`},
		{"200", "PUT", "/ebs/eb-secret", `{}`},
		{"200", "POST", "/ebs/eb-secret/request_responses", `{"records":[{"key":"a","record":` + record + `}]}`, "Recorder-Lag", "records=12, seconds=3.5"},
		{"200", "PUT", "/ebs/eb-other", `{}`},
		{"200", "PATCH", "/ebs/eb-other/request_response", record, "Recorder-Lag", "records=5, seconds=1"},
		{"404", "GET", "/nothing-of-the-sort", ""},
		{"405", "PATCH", "/sbds/sbd-secret", `{}`},
		{"200", "GET", a.Origin() + "/sbds", ""},
	} {
		if got := a.Do(r[1], r[2], r[3], r[4:]...); fmt.Sprint(got.Status) != r[0] {
			t.Fatalf("%s %s is answered %d: %s", r[1], r[2], got.Status, got.Text())
		}
	}
	events := a.Events("/changes")
	defer events.Close()
	if _, err := events.Data(); err != nil { // from now on it is told of changes as they come
		t.Fatal(err)
	}
	a.Must("PUT", "/sbds/sbd-later", `{}`)
	for {
		if e, err := events.Data(); err != nil {
			t.Fatal(err)
		} else if strings.Contains(e.Data, "sbd-later") {
			break
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s := readScrape(t, answered(t, "GET", a.Origin()+"/metrics", "")); s.has(counted) || time.Now().After(deadline) {
			return s
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for engine, configure := range map[string]func(*app.Config){
		"sqlite": func(*app.Config) {}, "postgres": func(c *app.Config) { c.Database = env.Postgres(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := worked(t, configure)
			t.Run("they tell what the archive did", s.isTrue)
			t.Run("promtool accepts them", func(t *testing.T) { promtool(t, s.text, "check", "metrics") })
			t.Run("every one is documented", func(t *testing.T) { s.isDocumented(t, engine) })
			t.Run("rules and dashboard ask for what there is", func(t *testing.T) { s.hasAll(t, engine) })
		})
	}
}

func (s *scrape) isTrue(t *testing.T) {
	for sample, value := range counted {
		s.want(t, sample, value)
	}
	for _, sample := range []string{"oda_feed_delay_seconds_count", "oda_database_bytes", "oda_wal_bytes", "oda_http_connections", "process_start_time_seconds", "go_goroutines"} {
		if s.samples[sample] <= 0 {
			t.Errorf("%s is %v", sample, s.samples[sample])
		}
	}
	if versions := s.labels["oda_build_info"]["version"]; !slices.Equal(versions, []string{"test"}) {
		t.Errorf("oda_build_info has the versions %q", versions)
	}
	for _, secret := range []string{"sbd-secret", "eb-secret", "sbd-other", "nobody-knows", "nothing-of-the-sort"} {
		if strings.Contains(s.text, secret) {
			t.Errorf("the metrics name %s", secret)
		}
	}
}

// However many different things are asked for, the number of series stays the same.
func TestMetricsDoNotGrowWithWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	a := env.Start(t)
	ask := func(from int) int {
		for i := range 50 {
			name := fmt.Sprint("x-", from+i)
			a.Do("PUT", "/ebs/"+name, `{}`, "X-Forwarded-User", name)
			a.Do("POST", "/ebs/"+name+"/request_response", `{}`, "X-Forwarded-User", name, "Recorder-Lag", "records=1, seconds=0")
			a.Do("GET", "/ebs/"+name, "")
			a.Do("GET", "/"+name, "")
			env.Send(t, strings.ToUpper(name[:1])+fmt.Sprint(i), a.URL()+"/ebs/a", "")
		}
		n := 0
		for sample := range readScrape(t, answered(t, "GET", a.Origin()+"/metrics", "")).samples {
			if strings.HasPrefix(sample, "oda_") {
				n++
			}
		}
		return n
	}
	ask(0)
	answered(t, "GET", a.Origin()+"/metrics", "") // is counted after it has ended
	if first, second := ask(100), ask(200); first != second {
		t.Errorf("there were %d series, and after other requests %d", first, second)
	}
}

// Metrics are at the root and below the base path, for readers.
func TestMetricsNeedTheRoleReader(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	token := must.Get(auth.CreateToken(file, auth.Token{Name: "prometheus", Role: auth.Reader}))(t)
	a := env.Start(t, func(c *app.Config) { c.Auth.Tokens, c.BasePath = file, "/observatory" })
	for _, path := range []string{"/metrics", "/observatory/metrics"} {
		if status, text := env.Send(t, "GET", a.Origin()+path, "", "Accept", "text/html"); status != 401 || !strings.Contains(text, "urn:oda:problem:unauthenticated") {
			t.Errorf("without a token %s answers %d %s", path, status, text)
		}
		s := readScrape(t, answered(t, "GET", a.Origin()+path, "", "Authorization", "Bearer "+token))
		if s.samples[`oda_problems_total{problem="unauthenticated"}`] == 0 {
			t.Error("the refusal was not counted")
		}
	}
}

// With an address of their own, metrics are only there, with the profiles.
func TestTheAddressForOperators(t *testing.T) {
	t.Parallel()
	a := env.Start(t, func(c *app.Config) { c.AdminListen = "127.0.0.1:0" })
	if status, _ := env.Send(t, "GET", a.Origin()+"/metrics", ""); status != 404 {
		t.Errorf("the main address answers %d", status)
	}
	readScrape(t, answered(t, "GET", a.Admin()+"/metrics", "")).want(t, "oda_ready", 1)
	for path, has := range map[string]string{
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline":           "app.test",
		"/debug/pprof/heap":              "",
	} {
		if text := answered(t, "GET", a.Admin()+path, ""); !strings.Contains(text, has) {
			t.Errorf("%s has no %q", path, has)
		}
	}
	if status, _ := env.Send(t, "GET", a.Admin()+"/api/v1/", ""); status != 404 {
		t.Errorf("the interface is there as well: %d", status)
	}
	// A name that leads here from elsewhere.
	request := must.Get(http.NewRequest("GET", a.Admin()+"/metrics", nil))(t)
	request.Host = "attacker.example"
	response := must.Get(client.Do(request))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("called by another name, it answers %d", response.StatusCode)
	}
}

func TestOnlyThisMachineReachesTheAddressForOperators(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		cfg := app.Config{
			Listen: "127.0.0.1:0", AdminListen: address, Database: "sqlite:" + filepath.Join(t.TempDir(), "archive.db"),
			MaxConnections: 1, Log: slog.New(slog.DiscardHandler),
		}
		_, err := app.Start(t.Context(), cfg)
		for _, err := range []error{err, errors.Join(app.Check(cfg)...)} {
			if err == nil || !strings.Contains(err.Error(), "is not a loopback address: --admin-listen") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// promtool runs Prometheus' own tool on an input.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(input)
	if said, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(said), "error") {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

const rulesFile = "../../deploy/prometheus/oda.rules.yml"

// alert is a rule.
type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	must.Do(t, err)
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	readYAML(t, rulesFile, &file)
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// expressions are those of the dashboard, by panel.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	text := must.Get(os.ReadFile("../../deploy/grafana/oda.json"))(t)
	var file struct {
		Panels []struct {
			Title, Type, Description string
			Targets                  []struct{ Expr string }
		}
	}
	must.Do(t, json.Unmarshal(text, &file))
	all := map[string][]string{}
	for _, p := range file.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || all[p.Title] != nil {
			t.Errorf("the panel %q has no description or no expression, or there are two of that name", p.Title)
		}
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	return all
}

// Every rule has a test that makes it fire, and a section that says what to do.
func TestTheAlertRules(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", rulesFile)
	promtool(t, "", "check", "config", "../../deploy/prometheus/prometheus.yml")
	tests := strings.TrimSuffix(rulesFile, ".yml") + ".test.yml"
	promtool(t, "", "test", "rules", tests)
	var file struct {
		Tests []struct {
			Expected []struct {
				Samples []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	readYAML(t, tests, &file)
	fired := ""
	for _, test := range file.Tests {
		for _, expected := range test.Expected {
			fired += fmt.Sprintln(expected.Samples)
		}
	}
	doc := must.Get(os.ReadFile("../../docs/watching.md"))(t)
	sections := strings.Count(string(doc), "\n### ")
	for _, a := range alerts(t) {
		if !strings.Contains(fired, `"`+a.Alert+`"`) {
			t.Errorf("no test makes %s fire", a.Alert)
		}
		_, section, _ := strings.Cut(string(doc), "\n### "+a.Alert+"\n")
		if section, _, _ = strings.Cut(section, "\n### "); !strings.Contains(section, "**Do:**") {
			t.Errorf("docs/watching.md does not say what to do about %s", a.Alert)
		}
		if want := "docs/watching.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want || a.Annotations["summary"] == "" {
			t.Errorf("%s leads to %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		sections--
	}
	if sections != 0 {
		t.Errorf("docs/watching.md has %d sections too many", sections)
	}
}

var metricName = regexp.MustCompile(`\b(?:oda|go|process)_[a-z_]+\b`)

// Prometheus can read every expression of the dashboard.
func TestTheDashboard(t *testing.T) {
	t.Parallel()
	asked := expressions(t)
	var rules bytes.Buffer
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	for _, panel := range slices.Sorted(maps.Keys(asked)) {
		for _, expr := range asked[panel] {
			fmt.Fprintf(&rules, "{record: 'a:b', expr: %q, labels: {panel: %q}},\n", strings.ReplaceAll(expr, "$__rate_interval", "1m"), panel+expr)
		}
	}
	rules.WriteString("]}]\n")
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	must.Do(t, os.WriteFile(file, rules.Bytes(), 0o600))
	promtool(t, "", "check", "rules", file)
}

// hasAll checks that what rules and dashboard ask for is there.
func (s *scrape) hasAll(t *testing.T, engine string) {
	asked := expressions(t)
	for _, a := range alerts(t) {
		asked[a.Alert] = append(asked[a.Alert], a.Expr)
	}
	documented := table(t)
	shown := map[string]bool{}
	for sample := range s.samples {
		name, _, _ := strings.Cut(sample, "{")
		shown[name] = true
	}
	for where, exprs := range asked {
		for _, name := range metricName.FindAllString(strings.Join(exprs, "\n"), -1) {
			if !shown[name] && !documented[name].isElsewhere(engine) {
				t.Errorf("%s asks for %s, which is not there", where, name)
			}
		}
	}
}

// row is a row of the table of metrics.
type row struct {
	kind       string
	labels     []string
	sqliteOnly bool
}

var tableRow = regexp.MustCompile("(?m)^\\| `(oda_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|([^|]*)\\|$")

func table(t *testing.T) map[string]row {
	t.Helper()
	doc := must.Get(os.ReadFile("../../docs/watching.md"))(t)
	rows := map[string]row{}
	for _, found := range tableRow.FindAllStringSubmatch(string(doc), -1) {
		var labels []string
		for _, label := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(found[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		rows[found[1]] = row{found[2], labels, strings.Contains(found[4], "**SQLite only**")}
	}
	return rows
}

// isElsewhere reports whether an engine lacks the metric.
func (r row) isElsewhere(engine string) bool { return r.sqliteOnly && engine != "sqlite" }

// isDocumented checks that the table in the documentation and the scrape are the
// same.
func (s *scrape) isDocumented(t *testing.T, engine string) {
	documented := table(t)
	for name, kind := range s.types {
		if !strings.HasPrefix(name, "oda_") {
			continue
		}
		labels := slices.Sorted(maps.Keys(s.labels[name]))
		if got, ok := documented[name]; !ok {
			t.Errorf("docs/watching.md does not have %s", name)
		} else if got.kind != kind || !slices.Equal(got.labels, labels) {
			t.Errorf("%s is a %s with the labels %q; docs/watching.md says a %s with %q", name, kind, labels, got.kind, got.labels)
		}
	}
	for name, d := range documented {
		if s.types[name] == "" && !d.isElsewhere(engine) {
			t.Errorf("docs/watching.md has %s, which is not there", name)
		}
	}
}
