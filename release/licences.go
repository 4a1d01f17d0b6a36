package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licence is a file in which somebody grants rights.
type licence struct {
	name string
	text []byte
}

var licenceName = regexp.MustCompile(`(?i)(^|[.])(licen[cs]e|copying|notice|copyright)([.-]|$)`)

// readLicences reads the licences in a folder of sources. Sources without one must not be
// shipped.
func readLicences(folder string) ([]licence, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var licences []licence
	for _, f := range found {
		if !f.Type().IsRegular() || !licenceName.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		name, packed := strings.CutSuffix(f.Name(), ".gz")
		if packed {
			reader, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return nil, err
			}
			if text, err = io.ReadAll(reader); err != nil {
				return nil, err
			}
		}
		licences = append(licences, licence{name, text})
	}
	if len(licences) == 0 {
		return nil, fmt.Errorf("%s has no licence", folder)
	}
	return licences, nil
}

// identifiers returns the SPDX identifiers of licences, as far as their texts are known.
func identifiers(licences []licence) []string {
	found := map[string]bool{}
	for _, l := range licences {
		for _, match := range licensecheck.Scan(l.text).Match {
			if !match.IsURL {
				found[match.ID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// writeLicences writes the licences of all parts, which their authors want to be shipped
// with the programs.
func (b *bill) writeLicences(to string) error {
	var text bytes.Buffer
	fmt.Fprintln(&text, "oda contains the following, under the licences of their authors.")
	for _, ref := range slices.Sorted(maps.Keys(b.parts)) {
		p := b.parts[ref]
		for _, l := range p.licences {
			fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), p.component.Name, p.component.Version, l.name, bytes.TrimSpace(l.text))
		}
	}
	return os.WriteFile(to, text.Bytes(), 0o644)
}
