package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file, or a folder if the mode says so, of an archive.
type entry struct {
	name  string
	mode  fs.FileMode
	owner int // user and group
	data  []byte
}

// file reads an entry from a file.
func file(name string, mode fs.FileMode, from string) (entry, error) {
	data, err := os.ReadFile(from)
	return entry{name: name, mode: mode, data: data}, err
}

// tree reads the files below a folder, in order of their names, as entries below a
// name.
func tree(name, from string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		e, err := file(path.Join(name, filepath.ToSlash(below)), 0o644, at)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

// writeTar writes an archive that depends on nothing but its arguments.
func writeTar(to io.Writer, when time.Time, entries []entry) error {
	w := tar.NewWriter(to)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.data)),
			Uid: e.owner, Gid: e.owner, ModTime: when, Format: tar.FormatUSTAR,
		}
		if e.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if e.mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeTarGz writes a compressed archive to a file.
func writeTarGz(to string, when time.Time, entries []entry) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(w, when, entries); err != nil {
		return err
	}
	return w.Close()
}
