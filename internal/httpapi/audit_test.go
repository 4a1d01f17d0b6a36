package httpapi_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// audited starts an archive with an audit log.
func audited(t *testing.T, folder string) (*env.Archive, string) {
	t.Helper()
	path := filepath.Join(folder, "audit.log")
	return env.Start(t, func(cfg *app.Config) { cfg.AuditLog = path }), path
}

func TestTheAuditLogHasALineForEachWrite(t *testing.T) {
	t.Parallel()
	a, path := audited(t, t.TempDir())
	stored := want(t, 200, a.Do("PUT", "/sbds/sbd-1", `{"sbd_id":"sbd-1","secret":"in the document"}`, "X-Forwarded-User", "ada"))
	type line = map[string]any
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     []line
	}{
		{"an update", "PUT", "/sbds/sbd-1", string(stored.Body), nil, 200, []line{
			{"operation": "storeSBD", "kind": "SBDefinition", "entity": "sbd-1", "version": 2.0, "user": "DefaultUser"},
		}},
		{"a new block", "PUT", "/ebs/eb-1", `{"eb_id":"eb-1"}`, nil, 200, []line{
			{"operation": "storeEB", "kind": "ExecutionBlock", "entity": "eb-1", "version": 1.0, "user": "DefaultUser"},
		}},
		{"a record", "POST", "/ebs/eb-1/request_response", `{"request":"secret.scan"}`, []string{"X-Forwarded-User", "ben"}, 200, []line{
			{"operation": "recordPost", "kind": "ExecutionBlock", "entity": "eb-1", "version": 1.0, "records": 1.0, "user": "ben"},
		}},
		{
			"a batch", "POST", "/ebs/eb-1/request_responses", `{"records":[{"key":"a","record":{"request":"x"}},{"key":"b","record":{"request":"y"}}]}`,
			nil, 200,
			[]line{{"operation": "recordBatch", "kind": "ExecutionBlock", "entity": "eb-1", "version": 1.0, "records": 2.0, "user": "DefaultUser"}},
		},
		{"a status", "POST", "/ebs/eb-1/status", `{"status":"Failed","reason":"secret"}`, []string{"X-Forwarded-User", "ben"}, 200, []line{
			{"operation": "sayStatusOfEB", "kind": "ExecutionBlock", "entity": "eb-1", "version": 1.0, "user": "ben"},
		}},
		{"a status that contradicts", "POST", "/ebs/eb-1/status", `{"status":"Observed","previous":"Executing"}`, nil, 422, []line{
			{"operation": "sayStatusOfEB", "kind": "ExecutionBlock", "entity": "eb-1", "problem": "status-mismatch"},
		}},
		{"several entities", "PUT", "/", `{"sbds":[{"sbd_id":"sbd-2"}],"prjs":[{"prj_id":"prj-1"},{"prj_id":"prj-2"}]}`, nil, 200, []line{
			{"operation": "storeSeveral", "kind": "SBDefinition", "entity": "sbd-2", "version": 1.0},
			{"operation": "storeSeveral", "kind": "Project", "entity": "prj-1", "version": 1.0},
			{"operation": "storeSeveral", "kind": "Project", "entity": "prj-2", "version": 1.0},
		}},
		{"an update that contradicts", "PUT", "/sbds/sbd-1", `{"sbd_id":"sbd-1"}`, nil, 422, []line{
			{"operation": "storeSBD", "kind": "SBDefinition", "entity": "sbd-1", "problem": "metadata-mismatch"},
		}},
		{"a body that is no JSON", "POST", "/sbis", `{`, nil, 400, []line{
			{"operation": "createSBI", "kind": "SBInstance", "problem": "invalid-json"},
		}},
		{"reading", "GET", "/sbds/sbd-1", "", nil, 200, nil},
		{"a search", "GET", "/sbds/search?q=x", "", nil, 200, nil},
		{"what is not there", "GET", "/sbds/sbd-9", "", nil, 404, nil},
	} {
		r := want(t, test.status, a.Do(test.method, test.path, test.body, test.headers...))
		got := env.AuditLines(t, path, r.Header.Get("X-Request-Id"))
		for i, g := range got {
			at, err := time.Parse(time.RFC3339Nano, g["time"].(string))
			if err != nil || time.Since(at) > time.Minute || g["from"] != "127.0.0.1" || g["status"] != float64(test.status) {
				t.Errorf("%s: line %d is %v", test.name, i, g)
			}
			for _, name := range []string{"number", "time", "from", "status", "request_id", "means"} {
				delete(g, name)
			}
			if i < len(test.want) && test.want[i]["user"] == nil {
				delete(g, "user")
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the audit log has something of a document in it: %s %v", text, err)
	}
}

// Who tried to do what without being allowed to is in the log, whether the role
// is missing altogether or only for the telescope: once for each caller and operation,
// so that nobody who may not write fills the log.
func TestTheAuditLogSumsRefusalsUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "tokens"), filepath.Join(folder, "audit.log")
	reader := newToken(t, file, auth.Token{Name: "reader", Role: auth.Reader})
	bound := newToken(t, file, auth.Token{Name: "bound", Role: auth.Editor, Telescopes: []string{"ska_mid"}})
	a := env.Start(t, tokensOf(file), func(cfg *app.Config) { cfg.AuditLog = path })
	first := make(map[string]bool) // request IDs
	for _, test := range []struct {
		method, path, body string
		headers            []string
	}{
		{"PUT", "/sbds/sbd-1", `{}`, reader},
		{"PATCH", "/ebs/eb-1/request_response", `{"request":"x"}`, reader},
		{"PUT", "/sbds/sbd-1", `{"telescope":"ska_low"}`, bound},
		{"PUT", "/", `{"sbds":[{"sbd_id":"sbd-1","telescope":"ska_mid"},{"sbd_id":"sbd-2","telescope":"ska_low"}],"prjs":[{"prj_id":"p"}]}`, bound},
		{"GET", "/backup", "", reader},
	} {
		for n := range 3 {
			r := want(t, 403, a.Do(test.method, test.path, test.body, test.headers...))
			if n == 0 {
				first[r.Header.Get("X-Request-Id")] = true
			}
		}
	}
	want(t, 403, a.Do("PUT", "/sbds/sbd-2", `{}`, reader...)) // another entity
	must.Do(t, a.Stop())
	type line = map[string]any
	lines := env.AuditLines(t, path, "")
	for _, g := range lines {
		if g["status"] != 403.0 || g["problem"] != "forbidden" || g["since"] == nil || !first[g["request_id"].(string)] {
			t.Errorf("a line is %v", g)
		}
		for _, name := range []string{"number", "time", "since", "from", "status", "request_id", "means", "user", "problem"} {
			delete(g, name)
		}
	}
	if diff := cmp.Diff([]line{
		{"caller": "bound", "operation": "storeSBD", "kind": "SBDefinition", "entity": "sbd-1", "count": 3.0},
		{"caller": "bound", "operation": "storeSeveral", "count": 3.0},
		{"caller": "reader", "operation": "backup", "count": 3.0},
		{"caller": "reader", "operation": "recordPatch", "kind": "ExecutionBlock", "entity": "eb-1", "count": 3.0},
		{"caller": "reader", "operation": "storeSBD", "kind": "SBDefinition", "entity": "sbd-1", "count": 4.0},
	}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nobody fills the log without a credential: what strangers try is summed up, whatever
// they try.
func TestStrangersGetNoLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "tokens"), filepath.Join(folder, "audit.log")
	editor := newToken(t, file, auth.Token{Name: "editor", Role: auth.Editor})
	a := env.Start(t, tokensOf(file), func(cfg *app.Config) { cfg.AuditLog = path })
	for _, test := range []struct {
		method, path string
		status       int
	}{{"PUT", "/sbds/sbd-1", 401}, {"PUT", "/nothing", 403}, {"DELETE", "/sbds/sbd-1", 403}} {
		for range 3 {
			want(t, test.status, a.Do(test.method, test.path, `{}`, "Sec-Fetch-Site", "cross-site"))
		}
	}
	r := want(t, 403, a.Do("PUT", "/sbds/sbd-1", `{}`, append([]string{"Sec-Fetch-Site", "cross-site"}, editor...)...))
	must.Do(t, a.Stop())
	if lines := env.AuditLines(t, path, r.Header.Get("X-Request-Id")); len(lines) != 1 || lines[0]["caller"] != "editor" || lines[0]["problem"] != "cross-origin" {
		t.Errorf("the log says %v about a caller who is known", lines)
	}
	counts := make(map[any]any)
	for _, line := range env.AuditLines(t, path, "") {
		if line["count"] == nil {
			t.Errorf("a stranger has a line: %v", line)
		}
		if line["caller"] == nil {
			counts[line["status"]] = line["count"]
		}
	}
	if counts[401.0] != 3.0 || counts[403.0] != 6.0 {
		t.Errorf("the sums are %v", counts)
	}
}

// A write is in the log before its answer is sent, and also if nobody waits for
// the answer.
func TestAWriteWithoutAnAnswerIsAudited(t *testing.T) {
	t.Parallel()
	a, path := audited(t, t.TempDir())
	conn := must.Get(net.Dial("tcp", a.Addr()))(t)
	body := `{"request":"x"}`
	want(t, 200, a.Do("PUT", "/ebs/eb-1", `{"eb_id":"eb-1"}`))
	must.Get(conn.Write([]byte("POST /api/v1/ebs/eb-1/request_response HTTP/1.1\r\nHost: x\r\nX-Request-Id: left\r\nContent-Length: 15\r\n\r\n" + body)))(t)
	must.Do(t, conn.Close())
	env.Await(t, "the write is in the audit log", func() bool { return len(env.AuditLines(t, path, "left")) > 0 })
}

func TestNothingIsStoredWithoutAnAuditLog(t *testing.T) {
	t.Parallel()
	disk := env.SmallDisk(t, 1<<20)
	a, path := audited(t, disk)
	want(t, 200, a.Do("PUT", "/ebs/eb-1", `{"eb_id":"eb-1"}`))
	empty := env.FillDisk(t, disk)
	writes := 1
	var last *env.Reply
	for ; writes < 4000; writes++ { // there is some space in reserve
		if last = a.Do("POST", "/ebs/eb-1/request_response", `{"request":"x"}`); last.Status != 200 {
			break
		}
	}
	p := refused(t, last, http.StatusServiceUnavailable, oda.Unaudited, "Nothing was stored")
	if last.Header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	t.Logf("after %d writes: %s", writes, p.Detail)
	for _, write := range [][3]string{
		{"PUT", "/sbds/sbd-1", `{"sbd_id":"sbd-1"}`},
		{"POST", "/sbds", `{}`},
		{"POST", "/ebs/create", ""},
		{"PUT", "/", `{"sbds":[{"sbd_id":"sbd-1"}]}`},
		{"PATCH", "/ebs/eb-1/request_response", `{"request":"x"}`},
	} {
		refused(t, a.Do(write[0], write[1], write[2]), http.StatusServiceUnavailable, oda.Unaudited)
	}
	want(t, 404, a.Do("GET", "/sbds/sbd-1", ""))
	block := want(t, 200, a.Do("GET", "/ebs/eb-1/request_responses?limit=5000", ""))
	if got := strings.Count(string(block.Body), `"sequence"`); got != writes-1 {
		t.Errorf("there are %d records; %d were acknowledged", got, writes-1)
	}
	if got := readiness(t, a); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", got)
	}
	if got := len(env.AuditLines(t, path, "")); got != writes {
		t.Errorf("there are %d lines, want %d", got, writes)
	}
	empty()
	want(t, 200, a.Do("PUT", "/sbds/sbd-1", `{"sbd_id":"sbd-1"}`))
	if got := readiness(t, a); got != http.StatusOK {
		t.Errorf("/readyz answers %d", got)
	}
}

// readiness returns the status of /readyz.
func readiness(t *testing.T, a *env.Archive) int {
	t.Helper()
	r := must.Get(a.Client().Get(a.Origin() + "/readyz"))(t)
	defer r.Body.Close()
	return r.StatusCode
}

// A backup shows everything at once, so who took one is in the log.
func TestABackupIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "tokens"), filepath.Join(folder, "audit.log")
	admin := newToken(t, file, auth.Token{Name: "night shift", Role: auth.Admin})
	a := env.Start(t, tokensOf(file), func(cfg *app.Config) { cfg.AuditLog = path })
	r := want(t, 200, a.Do("GET", "/backup", "", admin...))
	lines := env.AuditLines(t, path, r.Header.Get("X-Request-Id"))
	if len(lines) != 1 || lines[0]["operation"] != "backup" || lines[0]["caller"] != "night shift" || lines[0]["status"] != 200.0 {
		t.Errorf("the log says %v", lines)
	}
}
