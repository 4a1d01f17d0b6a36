package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
)

// manual writes the manual pages into a folder. The program that is built has them in
// it, so one for this machine is built and called.
func (r *release) manual() (folder string, err error) {
	folder = filepath.Join(r.work, "man")
	return folder, r.do(nil, "go", "run", "-ldflags", "-X main.version="+r.versions.semver, "./cmd/oda", "man", folder)
}

// compressed packs the files of a folder, each by itself, into another one, as Debian
// wants manual pages. The same text gives the same bytes.
func compressed(folder string) (string, error) {
	packed := folder + ".gz"
	if err := os.MkdirAll(packed, 0o755); err != nil {
		return "", err
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return "", err
		}
		if _, err := w.Write(text); err != nil {
			return "", err
		}
		if err := w.Close(); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(packed, page.Name()+".gz"), out.Bytes(), 0o644); err != nil {
			return "", err
		}
	}
	return packed, nil
}
