package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// What the page about settings says in its column about changes.
var reloads = map[string]string{
	"":          "restart",
	onSIGHUP:    "SIGHUP",
	fileRead:    "SIGHUP, which also reads the file again",
	fileReopen:  "restart; SIGHUP opens the file again",
	fileFollows: "restart; the file is followed",
}

func TestThePageAboutSettingsHasEveryFlag(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/configuration.md"))(t)
	parser, _, err := newParser(io.Discard, io.Discard, func(int) {})
	must.Do(t, err)
	for command, title := range map[string]string{"serve": "## The settings of the archive", "skuid": "## The settings of the identifier service"} {
		var want, got []string
		for _, f := range flagsOf(parser.Model, command) {
			reload, known := reloads[f.Tag.Get("reload")]
			if !known {
				t.Errorf("--%s has the tag reload:%q", f.Name, f.Tag.Get("reload"))
			}
			value := "none"
			switch {
			case f.HasDefault:
				value = "`" + f.Default + "`"
			case f.IsBool():
				value = "`false`"
			}
			want = append(want, fmt.Sprintf("| `--%s` | `%s` | `%s` | %s | %s |", f.Name, strings.Join(f.Envs, "`, `"), f.Name, value, reload))
		}
		_, section, _ := strings.Cut(string(page), title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^(\\| `--.*? \\|.*? \\|.*? \\|.*? \\|.*? \\|) (.+) \\|$").FindAllStringSubmatch(section, -1) {
			got = append(got, row[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the settings of oda %s (- flags, + page):\n%s", command, diff)
		}
	}
}

func TestSIGHUPAppliesSettingsThatHaveChanged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "oda.yaml")
	set := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	set("max-depth: 50\ntrust-proxy: 127.0.0.0/8\n")
	p := env.Oda(t, "serve", "--config="+file)
	ada := []string{"X-Forwarded-User", "ada", "X-Forwarded-Groups", "oda-admin", "Origin", "https://tools.example"}
	put := func() int {
		status, _ := env.Send(t, "PUT", p.URL+"/sbds/sbd-1", `{}`, ada...)
		return status
	}
	if status := put(); status != 403 {
		t.Errorf("a page of another origin is answered %d before", status)
	}

	set("max-depth: 60\ntrust-proxy: 127.0.0.0/8\nlog-level: debug\ncaller-rate: 0.1\ncors-origin: [https://tools.example]\nzone: [Africa/Johannesburg, ska_low=Australia/Perth]\n")
	p.Signal(syscall.SIGHUP)
	for _, line := range []string{
		`"level":"INFO","msg":"SIGHUP: the setting was changed","setting":"log-level","from":"info","to":"debug"`,
		`"level":"INFO","msg":"SIGHUP: the setting was changed","setting":"cors-origin","from":"[]","to":"[https://tools.example]"`,
		`"level":"INFO","msg":"SIGHUP: the setting was changed","setting":"caller-rate","from":"0","to":"0.1"`,
		`"level":"WARN","msg":"SIGHUP: the setting has changed; restart to apply it","setting":"max-depth","from":"50","to":"60"`,
	} {
		p.AwaitLog(line)
	}
	for query, zone := range map[string]string{"": "Africa/Johannesburg", "&telescope=ska_low": "Australia/Perth", "&telescope=x": "Africa/Johannesburg", "&telescope=ska_low&zone=UTC": "UTC"} {
		if _, body := env.Send(t, "GET", p.URL+"/night?date=2026-03-01"+query, "", "X-Forwarded-User", fmt.Sprint("bob", len(query)), "X-Forwarded-Groups", "oda-reader"); !strings.Contains(string(body), `{"zone":"`+zone+`"`) {
			t.Errorf("with %q the zone is not %s: %s", query, zone, body)
		}
	}
	if status := put(); status != 200 {
		t.Errorf("a page of the origin is answered %d afterwards", status)
	}
	if status := put(); status != 429 {
		t.Errorf("beyond the new limit a request is answered %d", status)
	}
	env.Send(t, "GET", "http://"+p.Host()+"/livez", "")
	p.AwaitLog(`"level":"DEBUG"`)

	// A mistake changes nothing, and a setting that needs a restart still does.
	set("caller-rate: 0\nlog-level: loud\n")
	p.Signal(syscall.SIGHUP)
	p.AwaitLog(`"level":"ERROR","msg":"SIGHUP: all settings stay as they were","error":"` + file + `:2: log-level must be one of`)
	set("caller-rate: 0\ncors-origin: [nonsense]\n")
	p.Signal(syscall.SIGHUP)
	p.AwaitLog(`"SIGHUP: all settings stay as they were","error":"the origin \"nonsense\" is not valid`)
	if status := put(); status != 429 {
		t.Errorf("after a mistake a request beyond the limit is answered %d", status)
	}
	set("trust-proxy: 127.0.0.0/8\nmax-depth: 60\n")
	p.Signal(syscall.SIGHUP)
	p.AwaitLog(`"setting":"caller-rate","from":"0.1","to":"0"`)
	if got := strings.Count(p.Log(), `restart to apply it","setting":"max-depth"`); got != 2 {
		t.Errorf("the log says %d times that max-depth needs a restart:\n%s", got, p.Log())
	}
	if status, body := env.Send(t, "GET", p.URL+"/sbds/sbd-1", "", ada...); status != 200 {
		t.Errorf("without limits a request is answered %d: %s", status, body)
	}
	p.MustStop()
}
