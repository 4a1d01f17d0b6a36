package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// gateway is a proxy, as in the examples of deploy, in front of an archive that
// runs with the base path /oda.
type gateway struct {
	t       *testing.T
	address string
	client  *http.Client
	token   string // an editor's
	audit   string
}

// startGateway starts an archive and a proxy. The example is changed where a test
// cannot run it as it is: ports and paths.
func startGateway(t *testing.T, example string, start func(dir, config, address string) *exec.Cmd, changes map[string]string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{t: t, address: freeAddress(t), audit: filepath.Join(dir, "audit.log")}
	tokens := filepath.Join(dir, "tokens")
	var err error
	g.token = must.Get(auth.CreateToken(tokens, auth.Token{Name: "script", Role: auth.Editor, Created: time.Now().UTC()}))(t)
	archive := env.Oda(t, "serve", "--base-path=/oda", "--tokens="+tokens, "--trust-proxy=127.0.0.1", "--audit-log="+g.audit)
	certificate, key := env.SelfSigned(t)
	for name, text := range map[string][]byte{"crt": certificate, "key": key, "users": []byte("ada:{PLAIN}of-ada\nben:{PLAIN}of-ben\n")} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	text := must.Get(os.ReadFile(example))(t)
	config := string(text)
	changes["/etc/ssl/certs/archive.example.crt"] = filepath.Join(dir, "crt")
	changes["/etc/ssl/private/archive.example.key"] = filepath.Join(dir, "key")
	changes["127.0.0.1:8080"] = archive.Host()
	for from, to := range changes {
		if from = strings.ReplaceAll(from, "DIR", dir); !strings.Contains(config, from) {
			t.Fatalf("the example does not contain %q", from)
		}
		config = strings.ReplaceAll(config, from, strings.NewReplacer("DIR", dir, "ADDRESS", g.address).Replace(to))
	}
	cmd := start(dir, config, g.address)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	process := must.Get(fault.Start(cmd))(t)
	t.Cleanup(func() {
		// nginx ends its workers, which a kill would leave behind.
		if err := process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-process.Ended()
		if t.Failed() {
			t.Logf("the proxy said: %s", said.String())
		}
	})
	transport := &http.Transport{
		TLSClientConfig: env.Trust(certificate), ForceAttemptHTTP2: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)} // not where the proxy is
			return (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", g.address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	err = fault.Poll(t.Context(), time.Minute, "the proxy", func() (bool, error) {
		if !process.Running() {
			return false, fmt.Errorf("it ended: %s", said.String())
		}
		conn, err := tls.Dial("tcp", g.address, &tls.Config{InsecureSkipVerify: true, ServerName: "archive.example"})
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	must.Do(t, err)
	return g
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address := must.Get(fault.FreeAddr())(t)
	return address
}

// program returns the path of a proxy.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, place := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(place); err == nil {
			return path
		}
	}
	t.Fatalf(`this test needs %s: run "make setup", which installs Debian's package`, name)
	return ""
}

func TestBehindNginx(t *testing.T) {
	t.Parallel()
	nginx := program(t, "nginx")
	g := startGateway(t, "../../deploy/nginx/oda.conf", func(dir, config, _ string) *exec.Cmd {
		user := ""
		if os.Geteuid() == 0 {
			user = "user root;" // its workers read the files of the test
		}
		var temporary strings.Builder
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			fmt.Fprintf(&temporary, "%s_temp_path %s/%s; ", name, dir, name)
		}
		main := fmt.Sprintf("%s\npid %s/pid;\nerror_log stderr;\nworker_processes 1;\ndaemon off;\nevents {}\nhttp {\naccess_log off;\n%s\n%s\n}\n",
			user, dir, temporary.String(), config)
		return exec.Command(nginx, "-p", dir, "-c", writeConfig(t, dir, "nginx.conf", main))
	}, map[string]string{"listen 443 ssl http2": "listen ADDRESS ssl http2", "/etc/nginx/oda.users": "DIR/users"})
	g.check()
}

func TestBehindCaddy(t *testing.T) {
	t.Parallel()
	caddy := program(t, "caddy")
	g := startGateway(t, "../../deploy/caddy/Caddyfile", func(dir, config, address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		main := fmt.Sprintf("{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port %s\n\tdefault_bind 127.0.0.1\n\tstorage file_system %s\n}\n%s", port, dir, config)
		cmd := exec.Command(caddy, "run", "--adapter", "caddyfile", "--config", writeConfig(t, dir, "Caddyfile", main))
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	}, map[string]string{
		// "caddy hash-password" makes hashes that take a second to check.
		"HASH-OF-ADA": "$2b$04$iUiWxHEZkUb96fu8la29Kuas5w7wImEG3Qb0HVMxJZ5Npbuhyg/hi",
		"HASH-OF-BEN": "$2b$04$ME4XSyCn9OnwtmDM2VYX5eLhqe2B8ebPvYAObtvCVKMM1UKOXXaIS",
	})
	g.check()
}

func writeConfig(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// credentials are set on a request.
type credentials func(*http.Request)

func (g *gateway) nobody(*http.Request)      {}
func (g *gateway) ada(r *http.Request)       { r.SetBasicAuth("ada", "of-ada") }
func (g *gateway) ben(r *http.Request)       { r.SetBasicAuth("ben", "of-ben") }
func (g *gateway) script(r *http.Request)    { r.Header.Set("Authorization", "Bearer "+g.token) }
func (g *gateway) pretender(r *http.Request) { r.Header.Set("Authorization", "Bearer oda_nothing") }
func (g *gateway) twice(r *http.Request) {
	r.Header["Authorization"] = []string{"Bearer oda_nothing", "Basic YWRhOm9mLWFkYQ=="}
}

// send sends a request with forged headers.
func (g *gateway) send(as credentials, method, path, body string) *http.Response {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), method, "https://archive.example"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header["X-Forwarded-User"] = []string{"root"}
	request.Header["X-Forwarded-Groups"] = []string{"oda-admin"}
	request.Header["X-Forwarded-For"] = []string{"198.51.100.9"}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	as(request)
	response, err := g.client.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	return response
}

// ask returns status and body of the answer.
func (g *gateway) ask(as credentials, method, path, body string) (int, string) {
	g.t.Helper()
	response := g.send(as, method, path, body)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// check checks what the examples promise.
func (g *gateway) check() {
	for name, test := range map[string]struct {
		as     credentials
		method string
		id     string
		status int
		user   string
	}{
		"nobody cannot read":                         {g.nobody, "GET", "sbd-0", 401, ""},
		"nobody cannot write as root":                {g.nobody, "PUT", "sbd-1", 401, ""},
		"a token that is not good lets nobody in":    {g.pretender, "PUT", "sbd-2", 401, ""},
		"somebody writes as themselves":              {g.ada, "PUT", "sbd-3", 200, "ada"},
		"a reader does not become an admin":          {g.ben, "PUT", "sbd-4", 403, ""},
		"a reader reads":                             {g.ben, "GET", "sbd-0", 404, ""},
		"a script writes with the name of its token": {g.script, "PUT", "sbd-5", 200, "script"},
	} {
		status, body := g.ask(test.as, test.method, "/oda/api/v1/sbds/"+test.id, body(test.method, test.id))
		var stored struct {
			Metadata struct {
				User string `json:"created_by"`
			}
		}
		if test.user != "" {
			if err := json.Unmarshal([]byte(body), &stored); err != nil {
				g.t.Errorf("%s: %v", name, err)
			}
		}
		if status != test.status || stored.Metadata.User != test.user {
			g.t.Errorf("%s: %d, stored by %q: %.300s", name, status, stored.Metadata.User, body)
		}
	}
	if status, body := g.ask(g.twice, "PUT", "/oda/api/v1/sbds/sbd-6", body("PUT", "sbd-6")); status != 400 && status != 401 {
		g.t.Errorf("with two kinds of credentials: %d: %.300s", status, body)
	}
	g.checkAudit()
	g.checkPaths()
	g.checkStream()
	if status, body := g.ask(g.script, "PUT", "/oda/api/v1/prjs/prj-1", `{"prj_id":"prj-1","text":"`+strings.Repeat("x", 4<<20)+`"}`); status != 200 {
		g.t.Errorf("a large document: %d: %.300s", status, body)
	}
}

func body(method, id string) string {
	if method == "GET" {
		return ""
	}
	return `{"sbd_id":"` + id + `"}`
}

// checkAudit checks that the audit log knows the client's address, although the
// client claims another.
func (g *gateway) checkAudit() {
	text, err := os.ReadFile(g.audit)
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"from":"127.0.0.2","via":"127.0.0.1"`) || strings.Contains(line, "root") {
			g.t.Errorf("a line of the audit log is %s", line)
		}
	}
	if !strings.Contains(string(text), `"user":"ada","caller":"ada","means":"proxy"`) || !strings.Contains(string(text), `"user":"script","caller":"script","means":"token"`) {
		g.t.Errorf("the audit log is %s", text)
	}
}

func (g *gateway) checkPaths() {
	for path, want := range map[string]string{"/oda/": "200", "/oda/api/v1/": "200", "/oda/sbds": "200", "/oda": "/oda/", "/oda/api/v1": "v1/"} {
		response := g.send(g.ada, "GET", path, "")
		_ = response.Body.Close()
		got := response.Header.Get("Location")
		if got == "" {
			got = fmt.Sprint(response.StatusCode)
		}
		if !strings.HasSuffix(got, want) {
			g.t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// What is not below the path is not the archive's.
	if status, text := g.ask(g.ada, "GET", "/api/v1/sbds/sbd-3", ""); strings.Contains(text, "sbd-3") {
		g.t.Errorf("without the base path: %d: %s", status, text)
	}
}

// checkStream checks that a change arrives while the stream is open.
func (g *gateway) checkStream() {
	stream := g.send(func(r *http.Request) {
		g.ada(r)
		r.Header.Set("Accept", "text/event-stream")
	}, "GET", "/oda/api/v1/changes?after=now", "")
	late := time.AfterFunc(time.Minute, func() { _ = stream.Body.Close() })
	defer late.Stop()
	defer stream.Body.Close()
	if status, text := g.ask(g.script, "PUT", "/oda/api/v1/sbds/sbd-live", body("PUT", "sbd-live")); status != 200 {
		g.t.Fatalf("%d: %s", status, text)
	}
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "sbd-live") {
			return
		}
	}
	g.t.Errorf("the change did not come while the stream (%s) was open", stream.Status)
}
