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
	"syscall"

	"oda"
)

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
		!strings.HasPrefix(name, "._") // where macOS keeps what it knows about a file
}

// uncompressed returns a name without what says that the file is compressed, in lower
// case.
func uncompressed(name string) string {
	name = strings.ToLower(name)
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// files reads the documents in files. What cannot be read is set aside.
type files struct {
	maxDocument int64 // bytes
	report      *Report
	emit        func(*found) error
}

// source hands over the documents in a file, or in all files of a folder and its folders.
func (r *files) source(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.folder(ctx, path)
	}
	f, err := os.Open(path)
	return r.file(ctx, f, err, found{Origin: Origin{File: path}})
}

// folder hands over the documents in all files of a folder and its folders. It follows no
// link in it, not even one that has just replaced a file or a folder.
func (r *files) folder(ctx context.Context, path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	any := false
	begin := path + string(filepath.Separator) // so that the folder itself may be a link
	err = filepath.WalkDir(begin, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && at == begin:
			return err
		case err == nil && entry.IsDir():
			return nil
		}
		about := found{Origin: Origin{File: at}}
		wanted := false
		if err == nil {
			wanted, err = isWanted(at, entry)
		}
		if err != nil {
			any = true
			return r.report.setAside(about.aside(err.Error()))
		}
		if !wanted {
			return nil
		}
		relative, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		f, err := openFile(root, relative)
		if err == nil && r.report.replaces(f) {
			return f.Close()
		}
		any = true
		about.Ref, about.version = expected(path, relative)
		return r.file(ctx, f, err, about)
	})
	if err == nil && !any {
		return fmt.Errorf("there is no file in %s whose name ends in .json, .ndjson or .jsonl", path)
	}
	return err
}

var errNotFile = errors.New("it is not an ordinary file")

// isWanted reports whether a file in a folder is to be read. An error says why it
// cannot be.
func isWanted(path string, entry fs.DirEntry) (bool, error) {
	is := isDocumentFile(entry.Name())
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		if info, err := os.Stat(path); is || err == nil && info.IsDir() {
			return false, errors.New("it is a link, and links in a folder are not followed; import what it leads to by itself")
		}
		return false, nil
	case is && !entry.Type().IsRegular():
		return false, errNotFile
	}
	return is, nil
}

// openFile opens a file below a folder. If the file has become a pipe, openFile does not
// wait for a writer.
func openFile(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// expected returns what the path of a file in a folder says about its document: the
// layout is KIND/ID/VERSION.json, below any folder.
func expected(folder, path string) (ref oda.Ref, version int64) {
	parts := strings.Split(filepath.ToSlash(filepath.Join(filepath.Base(folder), path)), "/")
	n := len(parts)
	name, isJSON := strings.CutSuffix(uncompressed(parts[n-1]), ".json")
	version, err := strconv.ParseInt(name, 10, 64)
	if n >= 3 && isJSON && err == nil && version > 0 {
		if kind := kindsOfFolders[parts[n-3]]; kind != 0 {
			return oda.Ref{Kind: kind, ID: parts[n-2]}, version
		}
	}
	if n >= 2 {
		return oda.Ref{Kind: kindsOfFolders[parts[n-2]]}, 0
	}
	return oda.Ref{}, 0
}

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\ufeff"

// file hands over the documents in an open file, which it closes: one, or one on each line.
// Failed says why it could not be opened.
func (r *files) file(ctx context.Context, f *os.File, failed error, about found) error {
	if failed != nil {
		return r.setAside(about, failed)
	}
	defer f.Close()
	in, content, err := r.content(f)
	if err != nil {
		return r.setAside(about, err)
	}
	defer content.Close()
	if ext := filepath.Ext(uncompressed(about.File)); ext == ".ndjson" || ext == ".jsonl" {
		return r.lines(ctx, in, about)
	}
	text, err := io.ReadAll(io.LimitReader(in, r.maxDocument+1))
	if err != nil {
		return r.setAside(about, fmt.Errorf("it cannot be read: %w", err))
	}
	return r.document(about, text)
}

// content returns what is in a file of documents, and what to close after reading.
func (r *files) content(f *os.File) (in *bufio.Reader, content io.Closer, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("it cannot be read: %w", err)
	}
	text, compressed, err := decompressed(f)
	if err != nil {
		return nil, nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if name := f.Name(); !compressed && uncompressed(name) != strings.ToLower(name) {
		return nil, nil, errors.New("it is not compressed as its name says, or it is damaged")
	}
	in = bufio.NewReaderSize(text, 1<<20)
	if compressed {
		in = bufio.NewReaderSize(&expanding{text, r.maxDocument + maxExpansion*info.Size()}, 1<<20)
	}
	if err := other(in); err != nil {
		return nil, nil, errors.Join(err, text.Close())
	}
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // these were peeked at
	}
	return in, text, nil
}

// lines hands over the documents on the lines of a file.
func (r *files) lines(ctx context.Context, in *bufio.Reader, about found) (err error) {
	for about.Line = 1; ctx.Err() == nil; about.Line++ {
		text, failed := r.line(in)
		ended := errors.Is(failed, io.EOF)
		switch text = bytes.TrimSpace(text); {
		case errors.Is(failed, errTooLarge):
			err = r.setAside(about, failed)
		case failed != nil && !ended:
			return r.setAside(about, fmt.Errorf("it cannot be read from here on: %w", failed))
		case len(text) > 0:
			err = r.document(about, text)
		}
		if err != nil || ended {
			return err
		}
	}
	return ctx.Err()
}

// document hands a document over, or sets it aside if it is none.
func (r *files) document(f found, text []byte) error {
	if int64(len(text)) > r.maxDocument {
		return r.setAside(f, tooLarge(r.maxDocument))
	}
	f.text = text
	if err := identify(&f); err != nil {
		r.report.Total.Add(1)
		r.report.Read.Add(1)
		return r.setAside(f, err)
	}
	return r.emit(&f)
}

func (r *files) setAside(f found, why error) error { return r.report.setAside(f.aside(why.Error())) }

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

// errTooLarge is what tooLarge returns.
var errTooLarge = errors.New("it is too large")

// tooLarge says that a document is larger than the archive takes.
func tooLarge(maxDocument int64) error {
	return fmt.Errorf("%w: it has more than %d bytes; if the archive is to take such documents, start its servers and this import with a larger --max-body", errTooLarge, maxDocument)
}

// line reads a line. If it is too large, it is skipped.
func (r *files) line(in *bufio.Reader) (line []byte, err error) {
	large := false
	for {
		part, err := in.ReadSlice('\n')
		if large = large || int64(len(line)+len(part)-len("\r\n")) > r.maxDocument; large {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case large && (err == nil || errors.Is(err, io.EOF)):
			return nil, tooLarge(r.maxDocument) // if there is no more, the next call says so
		default:
			return line, err
		}
	}
}
