package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

// packages makes the Debian packages that deploy/debian/nfpm.yaml describes.
func (r *release) packages(b *bill) error {
	for _, p := range linux {
		name := fmt.Sprintf("oda_%s_%s.deb", r.versions.debian, p.arch)
		if err := r.debianPackage(filepath.Join(r.out, name), p.arch, r.program(p)); err != nil {
			return err
		}
		b.ship(name, p)
	}
	return nil
}

// debianPackage makes the package of a program.
func (r *release) debianPackage(to, arch, program string) error {
	copyright := filepath.Join(r.work, "copyright")
	var text bytes.Buffer
	for _, part := range []string{filepath.Join(r.root, "LICENSE"), r.licences()} {
		data, err := os.ReadFile(part)
		if err != nil {
			return err
		}
		text.Write(data)
	}
	if err := os.WriteFile(copyright, text.Bytes(), 0o644); err != nil {
		return err
	}
	pages, err := r.manual()
	if err != nil {
		return err
	}
	if pages, err = compressed(pages); err != nil {
		return err
	}
	variables := map[string]string{
		"ARCH": arch, "VERSION": r.versions.debian, "PROGRAM": program, "COPYRIGHT": copyright, "MANUAL": pages,
	}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "deploy/debian/nfpm.yaml"), func(name string) string { return variables[name] })
	if err != nil {
		return err
	}
	info, err := config.Get("deb")
	if err != nil {
		return err
	}
	info.MTime = r.time
	info = nfpm.WithDefaults(info)
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := deb.Default.Package(info, f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
