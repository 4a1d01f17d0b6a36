package main

import (
	"fmt"
	"path"
	"path/filepath"
)

// program is where the program of a platform is built.
func (r *release) program(p platform) string {
	return filepath.Join(r.work, p.os+"-"+p.arch, "oda")
}

// programs builds the program for every platform, and packs each with what its user
// needs to know.
func (r *release) programs(b *bill) error {
	for _, p := range platforms {
		// As in the Makefile.
		err := r.do([]string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0"},
			"go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+r.versions.semver, "-o", r.program(p), "./cmd/oda")
		if err != nil {
			return err
		}
		if err := b.read(p, r.program(p)); err != nil {
			return err
		}
	}
	// The texts of all licences are known when all programs are.
	if err := b.writeLicences(r.licences()); err != nil {
		return err
	}
	pages, err := r.manual()
	if err != nil {
		return err
	}
	for _, p := range platforms {
		name := fmt.Sprintf("oda_%s_%s_%s", r.versions.semver, p.os, p.arch)
		entries, err := tree(path.Join(name, "man"), pages)
		if err != nil {
			return err
		}
		for _, from := range []struct {
			name string
			path string
		}{
			{"oda", r.program(p)},
			{"LICENSE", filepath.Join(r.root, "LICENSE")},
			{"THIRD-PARTY-LICENSES", r.licences()},
			{"README.md", filepath.Join(r.root, "README.md")},
			{"CHANGELOG.md", filepath.Join(r.root, "CHANGELOG.md")},
			{"oda.service", filepath.Join(r.root, "deploy/systemd/oda.service")},
			{"oda.yaml", filepath.Join(r.root, "deploy/systemd/oda.yaml")},
		} {
			if p.os != "linux" && filepath.Dir(from.path) == filepath.Join(r.root, "deploy/systemd") {
				continue
			}
			e, err := file(path.Join(name, from.name), 0o644, from.path)
			if err != nil {
				return err
			}
			if from.name == "oda" {
				e.mode = 0o755
			}
			entries = append(entries, e)
		}
		if err := writeTarGz(filepath.Join(r.out, name+".tar.gz"), r.time, entries); err != nil {
			return err
		}
		b.ship(name+".tar.gz", p)
	}
	return nil
}

// licences is where the licences of what is in the programs are written.
func (r *release) licences() string { return filepath.Join(r.work, "THIRD-PARTY-LICENSES") }
