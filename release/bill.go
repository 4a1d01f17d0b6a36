package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the bill of materials of a release: every file that is shipped, and what is
// inside it.
type bill struct {
	r        *release
	folders  map[string]string     // of modules, by path@version
	goroot   string                // of the compiler
	parts    map[string]part       // by reference
	programs map[platform][]string // references of what is in a program
	shipped  map[string][]string   // references of what is in a file
	roots    string                // reference of the root certificates
}

// part is something of others that is shipped.
type part struct {
	component cyclonedx.Component
	licences  []licence
}

// newBill returns a bill that knows where the sources of modules are.
func newBill(r *release) (*bill, error) {
	b := &bill{
		r: r, folders: map[string]string{}, parts: map[string]part{},
		programs: map[platform][]string{}, shipped: map[string][]string{},
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	b.goroot = strings.TrimSpace(string(goroot))
	if _, err := b.modules(r.root); err != nil {
		return nil, err
	}
	// The only part that comes with the release and not with the program.
	certificates, err := b.modules(filepath.Join(r.root, "release"), "golang.org/x/crypto/x509roots/fallback")
	if err != nil {
		return nil, err
	}
	b.roots, err = b.add("golang", certificates.Path, certificates.Version, "", b.folders[certificates.Path+"@"+certificates.Version])
	return b, err
}

// module is what "go mod download" says about one.
type module struct{ Path, Version, Dir string }

// modules learns where modules are, by default all, and returns the last one. It
// downloads them, because some are only needed on other platforms than this one.
func (b *bill) modules(folder string, which ...string) (last module, err error) {
	cmd := exec.Command("go", append([]string{"mod", "download", "-json"}, which...)...)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return last, fmt.Errorf("go mod download in %s: %w", folder, err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m module
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return last, nil
		} else if err != nil {
			return last, err
		}
		b.folders[m.Path+"@"+m.Version], last = m.Dir, m
	}
}

// read learns what a program is made of.
func (b *bill) read(p platform, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	std, err := b.add("golang", "std", strings.TrimPrefix(info.GoVersion, "go"), "", b.goroot)
	if err != nil {
		return err
	}
	swagger, err := b.addSwagger()
	if err != nil {
		return err
	}
	b.programs[p] = []string{std, swagger}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		ref, err := b.add("golang", m.Path, m.Version, m.Sum, b.folders[m.Path+"@"+m.Version])
		if err != nil {
			return err
		}
		b.programs[p] = append(b.programs[p], ref)
	}
	return nil
}

var swaggerVersion = regexp.MustCompile(`(?m)^# Version: (\S+)$`)

// addSwagger adds the Swagger UI, which is embedded in every program.
func (b *bill) addSwagger() (string, error) {
	folder := filepath.Join(b.r.root, "internal/web/assets/swagger")
	text, err := os.ReadFile(filepath.Join(folder, "CHECKSUMS"))
	if err != nil {
		return "", err
	}
	version := swaggerVersion.FindSubmatch(text)
	if version == nil {
		return "", fmt.Errorf("%s does not say its version", folder)
	}
	return b.add("npm", "swagger-ui-dist", string(version[1]), "", folder)
}

// add adds a part, once, with the licences in the folder of its sources, and returns
// its reference. The sum is that of go.sum.
func (b *bill) add(kind, name, version, sum, folder string) (string, error) {
	ref := fmt.Sprintf("pkg:%s/%s@%s", kind, name, version)
	if _, ok := b.parts[ref]; ok {
		return ref, nil
	}
	found, err := readLicences(folder)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	c := cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: ref}
	if encoded, ok := strings.CutPrefix(sum, "h1:"); ok {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return "", fmt.Errorf("%s: %w", ref, err)
		}
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	var choices cyclonedx.Licenses
	for _, id := range identifiers(found) {
		choices = append(choices, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	if len(choices) > 0 {
		c.Licenses = &choices
	}
	b.parts[ref] = part{c, found}
	return ref, nil
}

// ship notes that a file is shipped, with the programs of some platforms inside.
func (b *bill) ship(name string, inside ...platform) {
	b.shipped[name] = nil
	for _, p := range inside {
		b.contains(name, b.programs[p]...)
	}
}

// contains notes what else is in a file.
func (b *bill) contains(name string, refs ...string) {
	all := append(b.shipped[name], refs...)
	slices.Sort(all)
	b.shipped[name] = slices.Compact(all)
}

// write writes the bill in the format of CycloneDX.
func (b *bill) write() error {
	version := b.r.versions.semver
	subject := cyclonedx.Component{BOMRef: "oda", Type: cyclonedx.ComponentTypeApplication, Name: "oda", Version: version}
	subject.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "BSD-3-Clause"}}}
	files := slices.Sorted(maps.Keys(b.shipped))
	var components []cyclonedx.Component
	dependencies := []cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &files}}
	for _, name := range files {
		sum, err := sha256Of(filepath.Join(b.r.out, name))
		if err != nil {
			return err
		}
		components = append(components, cyclonedx.Component{
			BOMRef: name, Type: cyclonedx.ComponentTypeFile, Name: name, Version: version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		})
		inside := b.shipped[name]
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: name, Dependencies: &inside})
	}
	for _, ref := range slices.Sorted(maps.Keys(b.parts)) {
		components = append(components, b.parts[ref].component)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: b.r.time.Format(time.RFC3339), Component: &subject}
	bom.Components, bom.Dependencies = &components, &dependencies
	f, err := os.Create(filepath.Join(b.r.out, fmt.Sprintf("oda_%s.cdx.json", version)))
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
