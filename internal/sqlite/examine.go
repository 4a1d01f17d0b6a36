package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/doctor"
	"oda/internal/engine/audit"
	"oda/internal/engine/migrate"
)

// Examine looks at an archive that no server has open, and at the files around it. It
// changes nothing. An error says why it could not be examined, for the operator.
func Examine(ctx context.Context, path string, report *doctor.Report) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("cannot examine the archive %s: %w", path, openError(err))
		}
	}()
	f, err := claimToRead(path)
	if errors.Is(err, errHeld) {
		return fmt.Errorf("%w; leave --db out to ask the running server, or stop it first", errHeld)
	}
	if err != nil {
		return err
	}
	defer f.release()
	for _, look := range []func(string, *doctor.Report) error{permissions, leftovers, room} {
		if err := look(f.path, report); err != nil {
			return err
		}
	}
	c, err := openToRead(f.path)
	if err != nil {
		return ignoreCorrupt(err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.SetInterrupt(ctx.Done())
	if err := recognise(c); err != nil {
		return ignoreCorrupt(err)
	}
	if err := upToDate(ctx, c); errors.Is(err, migrate.ErrOlder) || errors.Is(err, migrate.ErrNewer) || errors.Is(err, migrate.ErrOther) {
		report.Add(doctor.OldSchema(path, err))
		return nil
	} else if err != nil {
		return ignoreCorrupt(err)
	}
	if err := times(c, report); err != nil {
		return ignoreCorrupt(err)
	}
	return ignoreCorrupt(doctor.FindDangling(examined{c}, report))
}

// ignoreCorrupt leaves out that the file is damaged, which Verify reports.
func ignoreCorrupt(err error) error {
	if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB {
		return nil
	}
	return err
}

// besides are the files that may stand beside the archive, by what follows its name.
var besides = []string{"-wal", "-shm", ".lock"}

// permissions reports files and folders that others could read or change.
func permissions(path string, report *doctor.Report) error {
	archive, err := os.Stat(path)
	if err != nil {
		return reason(err)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return reason(err)
	}
	add := func(wrong bool, place, do, format string, args ...any) {
		report.Add(doctor.Finding{Check: doctor.Permissions, Wrong: wrong, Place: place, Detail: fmt.Sprintf(format, args...), Do: do})
	}
	dir := filepath.Dir(path)
	if folder.Mode().Perm()&0o002 != 0 && folder.Mode()&fs.ModeSticky == 0 {
		add(true, dir, "chmod o-w "+dir, "everybody on this machine can remove and replace the archive in this folder (%04o)", folder.Mode().Perm())
	}
	if archive.Sys().(*syscall.Stat_t).Nlink > 1 {
		add(true, path, "keep the name that the -wal file belongs to, and remove the others", "the file has several names (hard links), and a server does not open it")
	}
	owner := archive.Sys().(*syscall.Stat_t).Uid
	for _, suffix := range append([]string{""}, besides...) {
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return reason(err)
		}
		mode := info.Mode().Perm()
		switch {
		case mode&0o002 != 0:
			add(true, path+suffix, "chmod o-rw "+path+suffix, "everybody on this machine can change it (%04o)", mode)
		case mode&0o004 != 0 && folder.Mode().Perm()&0o001 != 0 && suffix != ".lock" && suffix != "-shm":
			add(false, path+suffix, "chmod o-r "+path+suffix+", or chmod o-x "+dir, "everybody on this machine can read it (%04o), past all roles and tokens", mode)
		}
		// The lock belongs to whoever opened the archive last.
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != owner && suffix != ".lock" {
			add(true, path+suffix, fmt.Sprintf("chown --reference=%s %s", path, path+suffix), "it belongs to user %d, but the archive to user %d, whose server cannot open it", uid, owner)
		}
	}
	return nil
}

// leftovers reports files that something interrupted has left.
func leftovers(path string, report *doctor.Report) error {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return reason(err)
	}
	for _, entry := range entries {
		what := ""
		switch rest, ours := strings.CutPrefix(entry.Name(), name); {
		case !ours && strings.HasSuffix(entry.Name(), ".part"), ours && strings.HasSuffix(rest, ".part"):
			what = "left by a backup or export that was interrupted, or still being written"
		case ours && (rest == ".new" || rest == ".new-wal" || rest == ".new-shm"):
			what = "left by a first start that was interrupted"
		case ours && rest == ".restoring":
			what = "left by \"oda restore\" that was interrupted"
		case ours && rest == ".probe":
			what = "left by a server that was killed while it looked for room on the disk"
		default:
			continue
		}
		report.Add(doctor.Finding{Check: doctor.Leftovers, Place: filepath.Join(dir, entry.Name()), Detail: what, Do: "remove it, if nothing is being written at the moment"})
	}
	return nil
}

// room reports a disk that is almost full.
func room(path string, report *doctor.Report) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &disk); err != nil {
		return reason(err)
	}
	report.Room(filepath.Dir(path), int64(disk.Bavail)*int64(disk.Bsize))
	return nil
}

// times looks for a clock that went back.
func times(c *conn, report *doctor.Report) error {
	t := doctor.NewTimes(report)
	err := c.query("SELECT position, stored_on FROM versions UNION ALL SELECT position, recorded_on FROM records ORDER BY position", func(stmt *sqlite.Stmt) error {
		t.Note(stmt.ColumnInt64(0), oda.Instant(stmt.ColumnInt64(1)))
		return nil
	})
	t.End(time.Now())
	return err
}

// examined is an archive whose references are checked.
type examined struct{ *conn }

// Entries implements doctor.Archive.
func (e examined) Entries(kind oda.Kind) iter.Seq2[doctor.Entry, error] {
	query := "SELECT h.kind, h.identifier, c.summary FROM heads h JOIN catalogue c ON c.entity = h.entity"
	if kind != 0 {
		query += fmt.Sprintf(" WHERE h.kind = %d", kind)
	}
	return all(e.conn, query, func(stmt *sqlite.Stmt) doctor.Entry {
		return doctor.Entry{Ref: oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(0)), ID: stmt.ColumnText(1)}, Summary: bytesOf(stmt, 2)}
	})
}

// Versions implements doctor.Archive.
func (e examined) Versions(refs []oda.Ref) (map[oda.Ref]int64, error) {
	found := make(map[oda.Ref]int64, len(refs))
	for _, ref := range refs {
		err := e.query("SELECT version FROM heads WHERE kind = ? AND identifier = ?", func(stmt *sqlite.Stmt) error {
			found[ref] = stmt.ColumnInt64(0)
			return nil
		}, int64(ref.Kind), ref.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
