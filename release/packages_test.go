package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// makePackage makes the Debian package of some version, from the tree in a folder.
func makePackage(t *testing.T, tree, debian, program string) string {
	t.Helper()
	t.Chdir(tree) // nfpm.yaml names files of the tree
	r := &release{root: ".", work: t.TempDir(), versions: versions{debian: debian}, time: time.Unix(1_700_000_000, 0)}
	must(t, os.WriteFile(r.licences(), []byte("Licences of others.\n"), 0o644))
	to := filepath.Join(t.TempDir(), "oda.deb")
	must(t, r.debianPackage(to, "amd64", program))
	return to
}

// stub is a file in place of the program.
func stub(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oda")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

func TestTheDebianPackageHasWhatItsUnitNeeds(t *testing.T) {
	need(t, "dpkg-deb")
	deb := makePackage(t, root, "1.4.0~rc.1", stub(t))
	listed := output(t, "dpkg-deb", "--contents", deb)
	modes := map[string]string{} // mode and owner by path
	for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		fields := strings.Fields(line)
		modes[strings.TrimPrefix(fields[5], ".")] = fields[0] + " " + fields[1]
	}
	for path, want := range map[string]string{
		"/usr/bin/oda":                        "-rwxr-xr-x root/root",
		"/usr/lib/systemd/system/oda.service": "-rw-r--r-- root/root",
		"/usr/share/man/man1/oda.1.gz":        "-rw-r--r-- root/root",
		"/usr/share/man/man1/oda-sbds.1.gz":   "-rw-r--r-- root/root",

		"/usr/share/bash-completion/completions/oda":    "-rw-r--r-- root/root",
		"/usr/share/zsh/vendor-completions/_oda":        "-rw-r--r-- root/root",
		"/usr/share/fish/vendor_completions.d/oda.fish": "-rw-r--r-- root/root",
		"/etc/oda/oda.yaml":                             "-rw-r----- root/root", // it may have a password
		"/etc/logrotate.d/oda":                          "-rw-r--r-- root/root",
		"/usr/share/doc/oda/copyright":                  "-rw-r--r-- root/root",
		"/usr/share/doc/oda/docs/install.md":            "-rw-r--r-- root/root",
		"/usr/share/doc/oda/examples/nginx/oda.conf":    "-rw-r--r-- root/root",
	} {
		if modes[path] != want {
			t.Errorf("%s is %q, want %q", path, modes[path], want)
		}
	}
	for path := range modes {
		if strings.HasPrefix(path, "/var/") && !strings.HasSuffix(path, "/") {
			t.Errorf("%s would be removed with the package, data and all", path)
		}
	}

	control := filepath.Join(t.TempDir(), "control")
	output(t, "dpkg-deb", "--control", deb, control)
	conffiles := strings.Fields(read(t, filepath.Join(control, "conffiles")))
	if slices.Sort(conffiles); !slices.Equal(conffiles, []string{"/etc/logrotate.d/oda", "/etc/oda/oda.yaml"}) {
		t.Errorf("upgrades keep what an operator has changed in %v", conffiles)
	}
	for field, want := range map[string]string{"Package": "oda", "Version": "1.4.0~rc.1", "Architecture": "amd64", "Depends": "adduser"} {
		if got := strings.TrimSpace(output(t, "dpkg-deb", "--field", deb, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		output(t, "sh", "-n", filepath.Join(control, script))
	}

	// What the unit names must be in the package, or made by it.
	unit := readUnit(t)
	for path := range strings.FieldsSeq(unit["ExecStart"]) {
		if strings.HasPrefix(path, "/") && modes[path] == "" {
			t.Errorf("the unit needs %s, which the package does not have", path)
		}
	}
	postinst := read(t, filepath.Join(control, "postinst"))
	for _, made := range []string{" " + unit["User"] + "\n", "/var/lib/" + unit["StateDirectory"], "/var/log/" + unit["LogsDirectory"]} {
		if !strings.Contains(postinst, made) {
			t.Errorf("the unit needs %q, which postinst does not make", strings.TrimSpace(made))
		}
	}
}

// Every setting in the file must be one that the program knows, also where it is a
// comment for now.
func TestTheProgramKnowsTheSettings(t *testing.T) {
	help := output(t, program(t), "serve", "--help")
	found := regexp.MustCompile(`(?m)^#?([a-z-]+): `).FindAllStringSubmatch(read(t, filepath.Join(root, "deploy/systemd/oda.yaml")), -1)
	if len(found) < 6 {
		t.Fatalf("only %v were found in oda.yaml", found)
	}
	for _, setting := range found {
		if !strings.Contains(help, "--"+setting[1]+"=") {
			t.Errorf("oda serve does not know %s", setting[1])
		}
	}
}

// exposureMost bounds what "systemd-analyze security" thinks a service could do to its
// machine, in tenths: 100 is everything. What is left is that it is on the network, sees
// /proc (see the unit) and lets its group read the archive.
const exposureMost = "12"

func TestTheUnitIsValidAndHardened(t *testing.T) {
	need(t, "systemd-analyze")
	// The program need not be installed here.
	unit := filepath.Join(t.TempDir(), "oda.service")
	text := strings.ReplaceAll(read(t, filepath.Join(root, "deploy/systemd/oda.service")), "/usr/bin/oda", stub(t))
	must(t, os.WriteFile(unit, []byte(text), 0o644))
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold="+exposureMost, unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// readUnit returns the settings of the unit by name, the last of each.
func readUnit(t *testing.T) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for _, line := range strings.Split(read(t, filepath.Join(root, "deploy/systemd/oda.service")), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			settings[name] = value
		}
	}
	return settings
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := have(os.ReadFile(path))(t)
	return string(text)
}

// program returns an oda: the one that ODA_BIN names, or one that is built now.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ODA_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "oda")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/oda")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
