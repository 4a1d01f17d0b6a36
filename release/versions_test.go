package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// root is the folder of the checkout.
var root = func() string {
	path, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return path
}()

// version runs scripts/version for what git would say about a commit.
func version(t *testing.T, described, scheme string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "scripts", "version"), scheme)
	cmd.Env = append(os.Environ(), "VERSION_OF="+described)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestATagGivesTheVersionInEveryScheme(t *testing.T) {
	schemes := []string{"semver", "image", "debian", "python"}
	for described, want := range map[string][4]string{
		"v1.4.0":                       {"1.4.0", "1.4.0", "1.4.0", "1.4.0"},
		"v1.4.0-rc.1":                  {"1.4.0-rc.1", "1.4.0-rc.1", "1.4.0~rc.1", "1.4.0rc1"},
		"v1.4.0-alpha.2":               {"1.4.0-alpha.2", "1.4.0-alpha.2", "1.4.0~alpha.2", "1.4.0a2"},
		"v1.4.0-beta.3":                {"1.4.0-beta.3", "1.4.0-beta.3", "1.4.0~beta.3", "1.4.0b3"},
		"v1.4.0-5-g0123abc":            {"1.4.1-dev.5+g0123abc", "1.4.1-dev.5.g0123abc", "1.4.1~dev.5+g0123abc", "1.4.1.dev5+g0123abc"},
		"v1.4.0-rc.1-5-g0123abc":       {"1.4.0-rc.1.dev.5+g0123abc", "1.4.0-rc.1.dev.5.g0123abc", "1.4.0~rc.1.dev.5+g0123abc", "1.4.0rc2.dev5+g0123abc"},
		"v1.4.0-5-g0123abc-dirty":      {"1.4.1-dev.5+g0123abc.dirty", "1.4.1-dev.5.g0123abc.dirty", "1.4.1~dev.5+g0123abc.dirty", "1.4.1.dev5+g0123abc.dirty"},
		"v1.4.0-dirty":                 {"1.4.0+dirty", "1.4.0.dirty", "1.4.0+dirty", "1.4.0+dirty"},
		"v0.0.0-346-g49488c4":          {"0.0.0-dev.346+g49488c4", "0.0.0-dev.346.g49488c4", "0.0.0~dev.346+g49488c4", "0.0.0.dev346+g49488c4"},
		"v10.20.30-rc.12-345-g0123abc": {"10.20.30-rc.12.dev.345+g0123abc", "10.20.30-rc.12.dev.345.g0123abc", "10.20.30~rc.12.dev.345+g0123abc", "10.20.30rc13.dev345+g0123abc"},
	} {
		for i, scheme := range schemes {
			if got, err := version(t, described, scheme); err != nil || got != want[i] {
				t.Errorf("%s in the scheme %s is %s (%v), want %s", described, scheme, got, err, want[i])
			}
		}
	}
	for _, described := range []string{"v1.4", "1.4.0", "v01.4.0", "v1.4.0-final", "v1.4.0-rc1", "release-7", "v1.4.0; id"} {
		if got, err := version(t, described, "semver"); err == nil || !strings.Contains(got, "v1.4.0-rc.1") {
			t.Errorf("%s is the version %s (%v), want a sentence that says what a tag looks like", described, got, err)
		}
	}
}

// A package manager must never take an older commit for an upgrade.
func TestVersionsSortInTheOrderOfCommits(t *testing.T) {
	order := []string{
		"v0.0.0-1-g0000001", "v0.0.0-12-g0000002", "v0.9.0-alpha.1", "v0.9.0-beta.1", "v0.9.0-rc.1", "v0.9.0-rc.1-2-g0000003",
		"v0.9.0-rc.1-11-g0000004", "v0.9.0-rc.2", "v0.9.0", "v0.9.0-3-g0000005", "v0.9.1", "v0.10.0", "v1.0.0",
	}
	in := map[string][]string{}
	for _, described := range order {
		for _, scheme := range []string{"semver", "image", "debian", "python"} {
			got, err := version(t, described, scheme)
			if err != nil {
				t.Fatal(got)
			}
			in[scheme] = append(in[scheme], got)
		}
	}
	for i := 1; i < len(order); i++ {
		for _, scheme := range []string{"semver", "image"} {
			before, after := semver.MustParse(in[scheme][i-1]), semver.MustParse(in[scheme][i])
			if !before.LessThan(after) {
				t.Errorf("%s does not sort before %s", before, after)
			}
		}
	}
	t.Run("debian", func(t *testing.T) {
		need(t, "dpkg")
		for i := 1; i < len(order); i++ {
			before, after := in["debian"][i-1], in["debian"][i]
			if out, err := exec.Command("dpkg", "--compare-versions", before, "lt", after).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s does not sort before %s: %v %s", before, after, err, out)
			}
		}
	})
	t.Run("python", func(t *testing.T) {
		need(t, "python3")
		const program = `
import sys
from pip._vendor.packaging.version import Version
versions = [Version(text) for text in sys.argv[1:]]
assert [str(version) for version in versions] == sys.argv[1:], "not as Python would write them"
assert versions == sorted(versions), "out of order"`
		if out, err := exec.Command("python3", append([]string{"-c", program}, in["python"]...)...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", in["python"], out)
		}
	})
}

// need skips a test where a program is missing, as on a machine that is not a Debian.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s on this machine; on Debian, scripts/setup packages installs it", program)
	}
}
