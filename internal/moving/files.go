package moving

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

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
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
	return slices.Contains([]string{".json", ".ndjson", ".jsonl"}, filepath.Ext(name))
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
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !isDocumentFile(entry.Name()) {
			return ctx.Err()
		}
		any = true
		return documents(ctx, at, expected(path, at), report, emit)
	})
	if err == nil && !any {
		return fmt.Errorf("there is no file in %s whose name ends in .json, .ndjson or .jsonl", path)
	}
	return err
}

// expected returns what the path of a file says about its document: the layout is
// KIND/ID/VERSION.json, below any folder.
func expected(base, path string) found {
	relative, err := filepath.Rel(base, path)
	if err != nil {
		return found{}
	}
	parts := strings.Split(filepath.ToSlash(filepath.Join(filepath.Base(base), relative)), "/")
	n := len(parts)
	name, isJSON := strings.CutSuffix(parts[n-1], ".json")
	version, err := strconv.ParseInt(name, 10, 64)
	if n >= 3 && isJSON && err == nil && version > 0 {
		if kind := kindsOfFolders[parts[n-3]]; kind != 0 {
			return found{kind: kind, id: parts[n-2], version: version}
		}
	}
	if n >= 2 {
		return found{kind: kindsOfFolders[parts[n-2]]}
	}
	return found{}
}

// documents calls emit for the documents in a file: one, or one on each line.
func documents(ctx context.Context, path string, about found, report *Report, emit func(*found) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := decompressed(path, f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 1<<20)
	about.File = path
	set := func(f found, why error) error {
		return report.setAside(SetAside{Place: f.Place, Ref: oda.Ref{Kind: f.kind, ID: f.id}, Version: f.version, Reason: why.Error(), Document: f.text})
	}
	hand := func(f found) error {
		if err := identify(&f); err != nil {
			return set(f, err)
		}
		return emit(&f)
	}
	if lined(path) {
		for number := int64(1); ; number++ {
			text, err := r.ReadBytes('\n')
			if text = bytes.TrimSpace(text); len(text) > 0 {
				one := about
				one.Line, one.text = number, text
				if err := hand(one); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%s, line %d: %w", path, number, err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	about.text = text
	if len(text) > maxDocument {
		about.text = nil
		return set(about, fmt.Errorf("it is larger than %d bytes", maxDocument))
	}
	return hand(about)
}

// lined reports whether a file has a document on each line.
func lined(path string) bool {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst"))
	return strings.HasSuffix(name, ".ndjson") || strings.HasSuffix(name, ".jsonl")
}

// decompressed returns the content of a file that may be compressed, by its name.
func decompressed(path string, f io.Reader) (io.ReadCloser, error) {
	switch filepath.Ext(path) {
	case ".gz":
		return gzip.NewReader(f)
	case ".zst":
		decoder, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return io.NopCloser(f), nil
}

// spool keeps documents in a temporary file until all are there, to hand them over by
// entity: files have them in any order. Its memory is a few words for each.
type spool struct {
	file  *os.File
	out   *bufio.Writer
	end   int64
	index []spooled
}

// spooled is a document in the spool. Entities are told apart by a hash, and by their
// names when they are read.
type spooled struct {
	entity  uint64
	version int64
	offset  int64
	length  int64
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "oda-import-*")
	if err != nil {
		return nil, err
	}
	// The file has no name any more, so it is gone with the process.
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool{file: f, out: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (s *spool) close() { _ = s.file.Close() }

// spoolHeader goes before each document in the spool.
type spoolHeader struct {
	File    string
	Line    int64
	Kind    oda.Kind
	ID      string
	Version int64
}

func (s *spool) add(f *found) error {
	header, err := json.Marshal(spoolHeader{f.File, f.Line, f.kind, f.id, f.version})
	if err != nil {
		return err
	}
	n := len(header) + 1 + len(f.text)
	s.index = append(s.index, spooled{entity: oda.Ref{Kind: f.kind, ID: f.id}.Hash(), version: f.version, offset: s.end, length: int64(n)})
	s.end += int64(n)
	_, err = s.out.Write(append(append(header, '\n'), f.text...))
	return err
}

// histories calls emit for each entity.
func (s *spool) histories(ctx context.Context, emit func(*history) error) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	// Entities come in the order of their first documents.
	first := make(map[uint64]int64, len(s.index))
	for _, one := range s.index {
		if _, known := first[one.entity]; !known {
			first[one.entity] = one.offset
		}
	}
	slices.SortStableFunc(s.index, func(a, b spooled) int {
		return cmp.Or(cmp.Compare(first[a.entity], first[b.entity]), cmp.Compare(a.version, b.version))
	})
	for begin := 0; begin < len(s.index); {
		end := begin
		byRef := make(map[oda.Ref]*history)
		for ; end < len(s.index) && s.index[end].entity == s.index[begin].entity; end++ {
			f, err := s.read(s.index[end])
			if err != nil {
				return err
			}
			ref := oda.Ref{Kind: f.kind, ID: f.id}
			if byRef[ref] == nil {
				byRef[ref] = &history{Ref: ref}
			}
			byRef[ref].versions = append(byRef[ref].versions, *f)
		}
		for _, h := range byRef {
			if err := emit(h); err != nil {
				return err
			}
		}
		begin = end
	}
	return ctx.Err()
}

func (s *spool) read(one spooled) (*found, error) {
	text := make([]byte, one.length)
	if _, err := s.file.ReadAt(text, one.offset); err != nil {
		return nil, err
	}
	head, document, _ := bytes.Cut(text, []byte("\n"))
	var header spoolHeader
	if err := json.Unmarshal(head, &header); err != nil {
		return nil, err
	}
	return &found{Place: Place{header.File, header.Line}, kind: header.Kind, id: header.ID, version: header.Version, text: document}, nil
}
