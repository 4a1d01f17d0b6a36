package moving

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"oda"
)

// maxDocument bounds a document in a file.
const maxDocument = 256 << 20

// kindsOfFolders are the names of folders that hold the documents of one kind.
var kindsOfFolders = func() map[string]oda.Kind {
	names := make(map[string]oda.Kind)
	for _, kind := range oda.Kinds {
		names[kind.Collection()], names[kind.Prefix()] = kind, kind
	}
	return names
}()

// isDocumentFile reports whether a file of a folder is read, by its name.
func isDocumentFile(name string) bool {
	return slices.Contains([]string{".json", ".ndjson", ".jsonl", ".oda"}, filepath.Ext(uncompressed(name))) &&
		!strings.HasPrefix(name, "._") // what macOS keeps beside a file
}

// uncompressed returns a name without what says that the file is compressed, in lower
// case.
func uncompressed(name string) string {
	name = strings.ToLower(name)
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// files calls emit for the documents in a file, or in all files of a folder and its
// folders. What cannot be read is set aside.
func files(ctx context.Context, path string, report *Report, emit func(*found) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return documents(ctx, path, found{}, report, emit)
	}
	any := false
	folder := path + string(filepath.Separator) // so that a link is followed
	err = filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && at == folder:
			return err
		case err == nil && entry.IsDir():
			return nil
		}
		wanted := false
		if err == nil {
			wanted, err = isWanted(at, entry, report)
		}
		if err != nil {
			any = true
			return report.setAside(SetAside{Place: Place{File: at}, Reason: err.Error()})
		}
		if !wanted {
			return nil
		}
		any = true
		return documents(ctx, at, expected(path, at), report, emit)
	})
	if err == nil && !any {
		return fmt.Errorf("there is no file in %s whose name ends in .json, .ndjson or .jsonl", path)
	}
	return err
}

// isWanted reports whether a file in a folder is to be read. An error says why it
// cannot be.
func isWanted(path string, entry fs.DirEntry, report *Report) (bool, error) {
	is := isDocumentFile(entry.Name())
	if !is && entry.Type()&fs.ModeSymlink == 0 {
		return false, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, errors.New("it is a link to a folder, and such links are not followed; import that folder by itself")
	case !is:
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, errors.New("it is not an ordinary file")
	}
	return !report.replaces(info), nil
}

// expected returns what the path of a file in a folder says about its document: the
// layout is KIND/ID/VERSION.json, below any folder.
func expected(base, path string) found {
	relative, err := filepath.Rel(base, path)
	if err != nil {
		return found{}
	}
	parts := strings.Split(filepath.ToSlash(filepath.Join(filepath.Base(base), relative)), "/")
	n := len(parts)
	name, isJSON := strings.CutSuffix(uncompressed(parts[n-1]), ".json")
	version, err := strconv.ParseInt(name, 10, 64)
	if n >= 3 && isJSON && err == nil && version > 0 {
		if kind := kindsOfFolders[parts[n-3]]; kind != 0 {
			return found{Ref: oda.Ref{Kind: kind, ID: parts[n-2]}, version: version}
		}
	}
	if n >= 2 {
		return found{Ref: oda.Ref{Kind: kindsOfFolders[parts[n-2]]}}
	}
	return found{}
}

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\ufeff"

// documents calls emit for the documents in a file: one, or one on each line. What
// cannot be read is set aside.
func documents(ctx context.Context, path string, about found, report *Report, emit func(*found) error) error {
	about.File = path
	set := func(f found, why error) error {
		return report.setAside(f.aside(why.Error()))
	}
	f, err := os.Open(path)
	if err != nil {
		return set(about, err)
	}
	defer f.Close()
	in, compressed, err := decompressed(f)
	if err != nil {
		return set(about, fmt.Errorf("it cannot be read: %w", err))
	}
	defer in.Close()
	if !compressed && uncompressed(path) != strings.ToLower(path) {
		return set(about, errors.New("it is not compressed as its name says, or it is damaged"))
	}
	r := bufio.NewReaderSize(in, 1<<20)
	if err := other(r); err != nil {
		return set(about, err)
	}
	if mark, _ := r.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = r.Discard(len(mark)) // these were peeked at
	}
	hand := func(f found, text []byte) error {
		f.text = text
		if err := identify(&f); err != nil {
			report.Total.Add(1)
			report.Read.Add(1)
			return set(f, err)
		}
		return emit(&f)
	}
	if ext := filepath.Ext(uncompressed(path)); ext != ".ndjson" && ext != ".jsonl" {
		text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
		switch {
		case err != nil:
			return set(about, fmt.Errorf("it cannot be read: %w", err))
		case len(text) > maxDocument:
			return set(about, errTooLarge)
		}
		return hand(about, text)
	}
	for about.Line = 1; ctx.Err() == nil; about.Line++ {
		text, failed := readLine(r)
		ended := errors.Is(failed, io.EOF)
		switch text = bytes.TrimSpace(text); {
		case errors.Is(failed, errTooLarge):
			err = set(about, failed)
		case failed != nil && !ended:
			return set(about, fmt.Errorf("it cannot be read from here on: %w", failed))
		case len(text) > 0:
			err = hand(about, text)
		}
		if err != nil || ended {
			return err
		}
	}
	return ctx.Err()
}

// other returns an error if a file has something else in it than documents.
func other(r *bufio.Reader) error {
	begins, _ := r.Peek(16) // less, if it is shorter
	switch {
	case beginsAsExport(r):
		return errors.New("it is an export; import it by itself")
	case bytes.HasPrefix(begins, []byte("SQLite format 3")):
		return errors.New("it is a database; if it is an archive, make an export of it with \"oda export\", and import that")
	case bytes.HasPrefix(begins, []byte("oda backup ")):
		return errors.New("it is a backup; make an archive of it with \"oda restore\"")
	}
	return nil
}

var errTooLarge = fmt.Errorf("it is larger than %d bytes", maxDocument)

// readLine reads a line. If it is too large, it is skipped.
func readLine(r *bufio.Reader) (line []byte, err error) {
	large := false
	for {
		part, err := r.ReadSlice('\n')
		if large = large || len(line)+len(part) > maxDocument; !large {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case large && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLarge // if there is no more, the next call says so
		default:
			return line, err
		}
	}
}
