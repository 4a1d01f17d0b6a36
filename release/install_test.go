package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// debian is a small Debian in a folder.
type debian struct {
	root string
	init int // process of its systemd, if that runs
}

// newDebian installs a Debian with what the package works with.
func newDebian(t *testing.T) debian {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may install a Debian into a folder")
	}
	need(t, "mmdebstrap")
	d := debian{root: filepath.Join(t.TempDir(), "debian")}
	output(t, "mmdebstrap", "--quiet", "--variant=apt", "--include=adduser,dbus,init-system-helpers,logrotate,postgresql,systemd-sysv", "bookworm", d.root)
	return d
}

// run runs a command in it.
func (d debian) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	enter := []string{"chroot", d.root}
	if d.init != 0 {
		enter = []string{"nsenter", "--all", fmt.Sprintf("--target=%d", d.init)}
	}
	cmd := exec.Command(enter[0], append(enter[1:], args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a command that must succeed.
func (d debian) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.run(t, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// install installs a package, with further options of dpkg.
func (d debian) install(t *testing.T, deb string, options ...string) string {
	t.Helper()
	d.copy(t, deb, "/root/oda.deb")
	return d.must(t, append([]string{"dpkg", "--install"}, append(options, "/root/oda.deb")...)...)
}

func (d debian) copy(t *testing.T, from, to string) {
	t.Helper()
	output(t, "cp", from, filepath.Join(d.root, to))
}

func (d debian) read(t *testing.T, path string) string {
	t.Helper()
	return read(t, filepath.Join(d.root, path))
}

// exists fails the test if a file is there and should not be, or the other way round.
func (d debian) exists(t *testing.T, want bool, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(d.root, path)); (err == nil) != want {
			t.Errorf("%s exists: %t, want %t (%v)", path, err == nil, want, err)
		}
	}
}

// setting changes a setting of the service as an operator would.
func (d debian) setting(t *testing.T, name, value string) {
	t.Helper()
	path := filepath.Join(d.root, "etc/oda/oda.yaml")
	var lines []string
	for line := range strings.Lines(read(t, path)) {
		if !strings.HasPrefix(line, name+":") {
			lines = append(lines, line)
		}
	}
	lines = append(lines, name+": "+value+"\n")
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o640))
}

// start starts the very command of the unit, as its user, with its settings.
func (d debian) start(t *testing.T) *service {
	t.Helper()
	unit := map[string]string{}
	for line := range strings.Lines(d.read(t, "usr/lib/systemd/system/oda.service")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[name] = value
		}
	}
	c := &command{root: d.root, dir: unit["WorkingDirectory"], args: strings.Fields(unit["ExecStart"])}
	have(fmt.Sscan(d.must(t, "id", "--user", unit["User"])+d.must(t, "id", "--group", unit["User"]), &c.user, &c.group))(t)
	return start(t, c)
}

// nextPackage makes a package of a later version, whose settings have changed too.
func nextPackage(t *testing.T, program string) string {
	t.Helper()
	tree, packed := t.TempDir(), filepath.Join(t.TempDir(), "tree.tar")
	output(t, "git", "-C", root, "archive", "--output", packed, "HEAD")
	output(t, "tar", "--extract", "--file", packed, "--directory", tree)
	settings := filepath.Join(tree, "deploy/systemd/oda.yaml")
	must(t, os.WriteFile(settings, []byte(read(t, settings)+"\n# A setting of the next version.\n"), 0o644))
	return makePackage(t, tree, "999.0.0", program)
}

// A Debian without a running systemd: a container, or an image being made.
func TestTheDebianPackageIsInstalledUpgradedAndRemoved(t *testing.T) {
	folder, v := dist(t)
	d := newDebian(t)
	deb := filepath.Join(folder, fmt.Sprintf("oda_%s_%s.deb", v.debian, runtime.GOARCH))

	d.install(t, deb)
	if got := strings.TrimSpace(d.must(t, "oda", "--version")); got != "oda "+v.semver {
		t.Errorf("the program says %q, want %s", got, v.semver)
	}
	if got := d.must(t, "getent", "passwd", "oda"); !strings.HasSuffix(got, ":/var/lib/oda:/usr/sbin/nologin\n") {
		t.Errorf("the user is %q", got)
	}
	for _, path := range []string{"/var/lib/oda", "/var/log/oda"} {
		if got := d.must(t, "stat", "--format=%U:%G %a", path); got != "oda:oda 750\n" {
			t.Errorf("%s is %s", path, got)
		}
	}
	d.exists(t, true, "etc/systemd/system/multi-user.target.wants/oda.service")
	d.must(t, "logrotate", "--debug", "/etc/logrotate.d/oda")
	if out := d.must(t, "dpkg", "--verify", "oda"); out != "" {
		t.Errorf("dpkg --verify: %s", out)
	}

	// It serves, and the operator has a port of their own.
	d.setting(t, "listen", "127.0.0.1:0")
	edited := d.read(t, "etc/oda/oda.yaml")
	s := d.start(t)
	s.ready(t)
	stored := s.request(t, "POST", "/api/v1/prjs", `{"name": "before the upgrade"}`, http.StatusOK)
	s.stop(t)
	d.exists(t, true, "var/lib/oda/archive.db", "var/log/oda/audit.log")
	if got := d.must(t, "stat", "--format=%U", "/var/lib/oda/archive.db"); got != "oda\n" {
		t.Errorf("the archive belongs to %s", got)
	}
	var project struct {
		ID string `json:"prj_id"`
	}
	must(t, json.Unmarshal([]byte(stored), &project))

	// An upgrade keeps what the operator has changed and what is stored, and asks nothing
	// that apt does not answer.
	next := nextPackage(t, filepath.Join(d.root, "usr/bin/oda"))
	d.install(t, next, "--force-confold")
	if got := d.read(t, "etc/oda/oda.yaml"); got != edited {
		t.Errorf("the settings are now\n%s", got)
	}
	d.exists(t, true, "etc/oda/oda.yaml.dpkg-dist")
	if got := d.must(t, "stat", "--format=%U:%G %a", "/etc/oda/oda.yaml"); got != "root:oda 640\n" {
		t.Errorf("the settings are %s", got)
	}
	s = d.start(t)
	s.ready(t)
	s.request(t, "GET", "/api/v1/prjs/"+project.ID, "", http.StatusOK)
	s.stop(t)

	// The same package again does nothing.
	d.install(t, next, "--force-confold")

	d.must(t, "dpkg", "--remove", "oda")
	d.exists(t, false, "usr/bin/oda", "usr/lib/systemd/system/oda.service")
	d.exists(t, true, "etc/oda/oda.yaml", "var/lib/oda/archive.db", "var/log/oda/audit.log")

	out := d.must(t, "dpkg", "--purge", "oda")
	d.exists(t, false, "etc/oda/oda.yaml", "etc/logrotate.d/oda", "etc/systemd/system/multi-user.target.wants/oda.service", "etc/systemd/system/oda.service")
	d.exists(t, true, "var/lib/oda/archive.db", "var/log/oda/audit.log")
	if !strings.Contains(out, "rm -r /var/lib/oda") {
		t.Errorf("a purge does not say that the archive is kept:\n%s", out)
	}

	// Who installs it again has the archive again.
	d.install(t, deb)
	d.setting(t, "listen", "127.0.0.1:0")
	s = d.start(t)
	s.ready(t)
	s.request(t, "GET", "/api/v1/prjs/"+project.ID, "", http.StatusOK)
	s.stop(t)

	// Without an archive a purge leaves nothing behind.
	for _, path := range []string{"var/lib/oda", "var/log/oda"} {
		must(t, clearOut(filepath.Join(d.root, path)))
	}
	d.must(t, "dpkg", "--purge", "oda")
	d.exists(t, false, "var/lib/oda", "var/log/oda", "etc/oda")
}

// clearOut removes everything in a folder.
func clearOut(folder string) error {
	found, err := os.ReadDir(folder)
	for _, f := range found {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, f.Name())))
	}
	return err
}
