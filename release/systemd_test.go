package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// powerOff is SIGRTMIN+4, as the C library counts.
const powerOff = syscall.Signal(38)

// boot boots the Debian with its systemd, in a network of its own.
func (d *debian) boot(t *testing.T) {
	t.Helper()
	need(t, "systemd-nspawn")
	cmd := exec.Command("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe", "--boot", "--directory="+d.root)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed at the end
	}()
	t.Cleanup(func() {
		if d.init != 0 {
			_ = syscall.Kill(d.init, powerOff)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			cmd.Process.Kill()
			<-ended
		}
	})
	d.eventually(t, "systemd runs", func() bool {
		select {
		case <-ended:
			t.Skipf("systemd does not run in a container of this machine: %s", log.Bytes())
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		if err != nil {
			return false
		}
		var child int
		if _, err := fmt.Sscan(string(children), &child); err != nil {
			return false
		}
		d.init = child
		state, _ := d.run(t, "systemctl", "is-system-running")
		return state == "running\n" || state == "degraded\n"
	})
}

// eventually waits until something is so.
func (d *debian) eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for late := time.Now().Add(2 * patience); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(late) {
			log, _ := d.run(t, "journalctl", "--unit=oda", "--no-pager", "--lines=50")
			t.Fatalf("it never happened that %s:\n%s", what, log)
		}
	}
}

// request asks the service, from within its network.
func (d *debian) request(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("nsenter", append([]string{fmt.Sprintf("--target=%d", d.init), "--net", "curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "20"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const local = "http://127.0.0.1:8080"

// ready waits until the service is.
func (d *debian) ready(t *testing.T) {
	t.Helper()
	d.eventually(t, "the service is ready", func() bool {
		_, err := d.request(t, local+"/readyz")
		return err == nil
	})
}

// process is the process of the service.
func (d *debian) process(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(d.must(t, "systemctl", "show", "--property=MainPID", "--value", "oda"))
}

// store stores a project and returns its path.
func (d *debian) store(t *testing.T) string {
	t.Helper()
	out, err := d.request(t, "--json", `{"name": "under systemd"}`, local+"/api/v1/prjs")
	var project struct {
		ID string `json:"prj_id"`
	}
	if err != nil || json.Unmarshal([]byte(out), &project) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "/api/v1/prjs/" + project.ID
}

// A Debian with a running systemd: the unit with everything that it takes away from the
// service, on both engines.
func TestTheServiceRunsUnderSystemd(t *testing.T) {
	folder, v := dist(t)
	d := newDebian(t)
	d.boot(t)

	// The package starts the service.
	d.install(t, filepath.Join(folder, fmt.Sprintf("oda_%s_%s.deb", v.debian, runtime.GOARCH)))
	d.ready(t)
	stored := d.store(t)
	status := d.must(t, "cat", "/proc/"+d.process(t)+"/status")
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(status, want) {
			t.Errorf("the process has not %q:\n%s", want, status)
		}
	}
	if home, err := d.request(t, local+"/"); err != nil || !strings.Contains(html.UnescapeString(home), v.semver) {
		t.Errorf("the home page does not say the version %s: %v", v.semver, err)
	}
	if metrics, err := d.request(t, local+"/metrics"); err != nil || !strings.Contains(metrics, fmt.Sprintf("version=%q", v.semver)) {
		t.Errorf("the metrics do not say the version %s: %v", v.semver, err)
	}

	// logrotate begins a new file of the audit log, and nobody is cut off.
	before := d.process(t)
	d.must(t, "logrotate", "--force", "/etc/logrotate.d/oda")
	d.exists(t, true, "var/log/oda/audit.log.1")
	d.eventually(t, "there is a new audit log", func() bool {
		_, err := os.Stat(filepath.Join(d.root, "var/log/oda/audit.log"))
		return err == nil
	})
	d.store(t)
	if after := d.process(t); after != before {
		t.Errorf("the process was %s and is %s", before, after)
	}

	// It comes back after a crash.
	d.must(t, "systemctl", "kill", "--signal=KILL", "oda")
	d.eventually(t, "another process runs", func() bool { return d.process(t) != before })
	d.ready(t)

	// An upgrade restarts it, with the operator's settings and all that is stored.
	before = d.process(t)
	d.setting(t, "log-level", "debug")
	d.install(t, nextPackage(t, filepath.Join(d.root, "usr/bin/oda")), "--force-confold")
	d.eventually(t, "another process runs", func() bool { return d.process(t) != before && d.process(t) != "0" })
	d.ready(t)
	if out, err := d.request(t, local+stored); err != nil {
		t.Errorf("after the upgrade: %v: %s", err, out)
	}

	// The same unit, on PostgreSQL, over a socket of this machine.
	d.must(t, "runuser", "-u", "postgres", "--", "createuser", "oda")
	d.must(t, "runuser", "-u", "postgres", "--", "createdb", "--owner=oda", "oda")
	d.setting(t, "db", "postgres:///oda?host=/run/postgresql&user=oda")
	d.must(t, "systemctl", "restart", "oda")
	d.ready(t)
	onPostgres := d.store(t)
	d.must(t, "systemctl", "restart", "oda")
	d.ready(t)
	if out, err := d.request(t, local+onPostgres); err != nil {
		t.Errorf("on PostgreSQL: %v: %s", err, out)
	}

	// Who has disabled the service finds it disabled after an upgrade.
	d.must(t, "systemctl", "disable", "--now", "oda")
	d.install(t, filepath.Join(folder, fmt.Sprintf("oda_%s_%s.deb", v.debian, runtime.GOARCH)), "--force-confold")
	if state, _ := d.run(t, "systemctl", "is-active", "oda"); state != "inactive\n" {
		t.Errorf("a stopped service is %s after an upgrade", state)
	}
	if state, _ := d.run(t, "systemctl", "is-enabled", "oda"); state != "disabled\n" {
		t.Errorf("a disabled service is %s after an upgrade", state)
	}

	// A removal stops it, and who installs it again has it again.
	d.must(t, "systemctl", "enable", "--now", "oda")
	d.ready(t)
	d.must(t, "dpkg", "--remove", "oda")
	if out, err := d.request(t, local+"/livez"); err == nil {
		t.Errorf("a removed service answers: %s", out)
	}
	d.install(t, filepath.Join(folder, fmt.Sprintf("oda_%s_%s.deb", v.debian, runtime.GOARCH)), "--force-confold")
	d.ready(t)
	d.must(t, "dpkg", "--purge", "oda")
	d.exists(t, true, "var/lib/oda/archive.db")
}
