package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"oda/internal/backup"
	"oda/internal/files"
)

// lockPage is where SQLite keeps its locks. The page there is never used.
const lockPage = 1 << 30

// Restore makes an archive from a backup, in a file that does not exist yet. The file
// appears only when the whole backup was read and is not damaged. It calls note with
// how many bytes of the backup were read, of roughly how many.
func Restore(from io.Reader, path string, note func(read, total int64)) (_ backup.Header, _ backup.End, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot restore the archive %s: %w", path, openError(err))
		}
	}()
	r, err := backup.NewReader(from)
	if err != nil {
		return backup.Header{}, backup.End{}, err
	}
	folder := filepath.Dir(path)
	_, missing := os.Stat(folder)
	f, err := claim(path)
	if err != nil {
		return backup.Header{}, backup.End{}, err
	}
	defer func() {
		f.release()
		if err != nil && missing != nil {
			_ = os.Remove(folder) // only if it is empty
		}
	}()
	for _, name := range []string{f.path, f.path + "-wal"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return backup.Header{}, backup.End{}, fmt.Errorf("%s is already there; move it away, or restore into another file", name)
		}
	}
	fresh := f.path + ".restoring"
	defer func() {
		if err != nil {
			_ = os.Remove(fresh)
		}
	}()
	if err := assemble(r, fresh, note); err != nil {
		return backup.Header{}, backup.End{}, reason(err)
	}
	if err := fits(fresh, r.End()); err != nil {
		return backup.Header{}, backup.End{}, err
	}
	if err := os.Rename(fresh, f.path); err != nil {
		return backup.Header{}, backup.End{}, reason(err)
	}
	return r.Header, r.End(), reason(files.SyncDir(filepath.Dir(f.path)))
}

// assemble writes the pages of a backup to a file, and syncs it.
func assemble(r *backup.Reader, path string, note func(read, total int64)) (err error) {
	file, err := files.Anew(path, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size := int64(r.Header.PageSize)
	var there backup.Set
	for {
		first, content, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if _, err := file.WriteAt(content, int64(first-1)*size); err != nil {
			return err
		}
		for i := range int64(len(content)) / size {
			there.Add(first + uint32(i))
		}
		note(r.At(), r.Header.Pages*size)
	}
	end := r.End()
	for page := int64(1); page <= end.Pages; page++ {
		if !there.Has(uint32(page)) && (page-1)*size != lockPage {
			return &backup.Damage{Byte: r.At(), What: fmt.Sprintf("page %d of %d is not in it", page, end.Pages)}
		}
	}
	if err := file.Truncate(end.Pages * size); err != nil {
		return err
	}
	return file.Sync()
}

// fits checks that a restored file is the archive that its backup describes.
func fits(path string, end backup.End) (err error) {
	c, err := openToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := recognise(c); err != nil {
		return err
	}
	last, err := c.number("SELECT last_position FROM state")
	if err == nil && last != end.Position {
		err = fmt.Errorf("its log of changes ends at position %d, but the backup says %d", last, end.Position)
	}
	return err
}
