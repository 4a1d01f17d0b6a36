package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// dist returns the folder of the release to test, and its versions.
func dist(t *testing.T) (string, versions) {
	t.Helper()
	folder := os.Getenv("ODA_DIST")
	if folder == "" {
		t.Skip("this tests a whole release: make release-test")
	}
	v := have(readVersions(root))(t)
	return folder, v
}

// unpacked returns the files of a tar archive by name, without their first folder.
func unpacked(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f := have(os.Open(path))(t)
	defer f.Close()
	z := have(gzip.NewReader(f))(t)
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = have(io.ReadAll(r))(t)
	}
}

func TestDistHasEverythingAndItsChecksums(t *testing.T) {
	folder, v := dist(t)
	want := []string{
		"SHA256SUMS",
		fmt.Sprintf("oda-%s.tgz", v.semver),
		fmt.Sprintf("oda_%s.cdx.json", v.semver),
		fmt.Sprintf("oda_%s_amd64.deb", v.debian),
		fmt.Sprintf("oda_%s_arm64.deb", v.debian),
		fmt.Sprintf("oda_%s_darwin_amd64.tar.gz", v.semver),
		fmt.Sprintf("oda_%s_darwin_arm64.tar.gz", v.semver),
		fmt.Sprintf("oda_%s_image.tar", v.semver),
		fmt.Sprintf("oda_%s_linux_amd64.tar.gz", v.semver),
		fmt.Sprintf("oda_%s_linux_arm64.tar.gz", v.semver),
		fmt.Sprintf("oda_helper-%s-py3-none-any.whl", v.python),
	}
	slices.Sort(want)
	found := have(os.ReadDir(folder))(t)
	var got []string
	for _, f := range found {
		got = append(got, f.Name())
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	check := exec.Command("sha256sum", "--check", "--strict", sumsName)
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != len(want)-1 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

func TestEveryProgramIsStaticAndForItsPlatform(t *testing.T) {
	folder, v := dist(t)
	for _, p := range platforms {
		files := unpacked(t, filepath.Join(folder, fmt.Sprintf("oda_%s_%s_%s.tar.gz", v.semver, p.os, p.arch)))
		for _, name := range []string{"oda", "LICENSE", "THIRD-PARTY-LICENSES", "README.md", "CHANGELOG.md"} {
			if len(files[name]) == 0 {
				t.Errorf("%s: %s is missing", p, name)
			}
		}
		info := have(buildinfo.Read(bytes.NewReader(files["oda"])))(t)
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["GOOS"] != p.os || settings["GOARCH"] != p.arch || settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
			t.Errorf("%s: built with %v", p, settings)
		}
		if bytes.Contains(files["oda"], []byte(root)) {
			t.Errorf("%s: the program knows where it was built", p)
		}
		switch p.os {
		case "linux":
			f := have(elf.NewFile(bytes.NewReader(files["oda"])))(t)
			if libraries, err := f.ImportedLibraries(); err != nil && !errors.Is(err, elf.ErrNoSymbols) || len(libraries) > 0 || f.Section(".interp") != nil {
				t.Errorf("%s: it needs libraries: %v %v", p, libraries, err)
			}
		case "darwin":
			if _, err := macho.NewFile(bytes.NewReader(files["oda"])); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
		if p.os == runtime.GOOS && p.arch == runtime.GOARCH {
			path := filepath.Join(t.TempDir(), "oda")
			must(t, os.WriteFile(path, files["oda"], 0o755))
			if got := strings.TrimSpace(output(t, path, "--version")); got != "oda "+v.semver {
				t.Errorf("oda --version says %q, want the version of the tag, %s", got, v.semver)
			}
		}
	}
}

func TestPackagesHaveTheVersionOfTheTag(t *testing.T) {
	folder, v := dist(t)
	for _, p := range linux {
		deb := filepath.Join(folder, fmt.Sprintf("oda_%s_%s.deb", v.debian, p.arch))
		if got := output(t, "dpkg-deb", "--field", deb, "Version", "Architecture"); got != fmt.Sprintf("Version: %s\nArchitecture: %s\n", v.debian, p.arch) {
			t.Errorf("the Debian package says %q", got)
		}
	}
	packed := have(loader.Load(filepath.Join(folder, fmt.Sprintf("oda-%s.tgz", v.semver))))(t)
	if packed.Metadata.Version != v.semver || packed.Metadata.AppVersion != v.semver {
		t.Errorf("the chart says version %s, appVersion %s", packed.Metadata.Version, packed.Metadata.AppVersion)
	}
	whole := have(loader.Load(filepath.Join(root, "deploy/helm/oda")))(t)
	if len(packed.Raw) != len(whole.Raw) || len(packed.Templates) != len(whole.Templates) {
		t.Errorf("the chart has %d files, its sources have %d", len(packed.Raw), len(whole.Raw))
	}
	target := t.TempDir()
	output(t, "python3", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--target", target,
		filepath.Join(folder, fmt.Sprintf("oda_helper-%s-py3-none-any.whl", v.python)))
	ask := exec.Command("python3", "-c", "import oda_helper; print(oda_helper.__version__)")
	ask.Env = append(os.Environ(), "PYTHONPATH="+target)
	if got, err := ask.CombinedOutput(); err != nil || strings.TrimSpace(string(got)) != v.python {
		t.Errorf("the wheel says %s (%v), want %s", got, err, v.python)
	}
}

// The bill lists every file with its checksum, and every module inside it.
func TestTheBillCoversEverythingShipped(t *testing.T) {
	folder, v := dist(t)
	var bom cyclonedx.BOM
	text := read(t, filepath.Join(folder, fmt.Sprintf("oda_%s.cdx.json", v.semver)))
	must(t, json.Unmarshal([]byte(text), &bom))
	components := map[string]cyclonedx.Component{}
	for _, c := range *bom.Components {
		components[c.BOMRef] = c
	}
	inside := map[string][]string{}
	for _, d := range *bom.Dependencies {
		if d.Dependencies != nil {
			inside[d.Ref] = *d.Dependencies
		}
	}
	for line := range strings.Lines(read(t, filepath.Join(folder, sumsName))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if strings.HasSuffix(name, ".cdx.json") {
			continue
		}
		c, ok := components[name]
		if !ok || c.Hashes == nil || (*c.Hashes)[0].Value != sum {
			t.Errorf("%s is not in the bill, or with another checksum", name)
		}
		if !slices.Contains(inside["oda"], name) {
			t.Errorf("%s is not a part of the release", name)
		}
	}
	for _, p := range platforms {
		name := fmt.Sprintf("oda_%s_%s_%s.tar.gz", v.semver, p.os, p.arch)
		info := have(buildinfo.Read(bytes.NewReader(unpacked(t, filepath.Join(folder, name))["oda"])))(t)
		in := []string{name}
		if p.os == "linux" {
			in = append(in, fmt.Sprintf("oda_%s_%s.deb", v.debian, p.arch), fmt.Sprintf("oda_%s_image.tar", v.semver))
		}
		for _, m := range info.Deps {
			ref := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
			if components[ref].Licenses == nil || components[ref].Hashes == nil {
				t.Errorf("%s has no licence or no checksum in the bill", ref)
			}
			for _, name := range in {
				if !slices.Contains(inside[name], ref) {
					t.Errorf("%s is not listed as a part of %s", ref, name)
				}
			}
		}
		if std := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"); !slices.Contains(inside[name], std) {
			t.Errorf("%s is not listed as a part of %s", std, name)
		}
	}
}
