package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"oda/client"
	"oda/internal/app"
	"oda/internal/backup"
	"oda/internal/files"
)

// backUp takes a backup.
type backUp struct {
	Output string   `short:"o" required:"" placeholder:"FILE" help:"File to write. It appears when it is complete."`
	Db     database `placeholder:"DATABASE" help:"The archive, sqlite:PATH, if no server has it open. Without it, the running archive at --url is backed up."`
	remote
	Force bool `help:"Replace FILE if it exists."`
	Quiet bool `short:"q" help:"Print no progress."`
}

// Help is what "oda backup --help" says besides the flags.
func (*backUp) Help() string {
	return `Writes a copy of an archive of the embedded engine, as of one moment, to a file.
Without --db it asks the running server, which requires the role admin; others can
read and write in the meantime. With --db it reads the file of a stopped server.

"oda restore" makes an archive from the file. For an archive on PostgreSQL, use
PostgreSQL's own tools; docs/backup.md has the commands.

Exit codes: 0 the backup is complete and on disk; 1 it is not, and there is no FILE;
2 invalid command line.`
}

// Run takes the backup.
func (b *backUp) Run(ctx context.Context, to streams) error {
	if b.Output == "" || b.Output == "-" {
		return &failure{exitUsage, "--output needs the name of a file; a backup cannot be written to stdout"}
	}
	began := time.Now()
	var written, total atomic.Int64
	var end backup.End
	err := writeFresh(ctx, "backup", b.Output, backup.Begins, b.Force, func(file io.Writer) (err error) {
		stop := newProgress(to.err, b.Quiet).follow(func(took time.Duration) (string, float64) {
			return howFar("backing up", written.Load(), total.Load(), took, size)
		})
		defer stop()
		end, err = b.take(ctx, file, to.version, &written, &total)
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	_, err = fmt.Fprintf(to.out, "%s up to position %s in %s: %s in %s, %s per second\n", manyOf(counted(end), "entity"), grouped(end.Position), b.Output,
		size(written.Load()), took.Round(10*time.Millisecond), size(int64(float64(written.Load())/took.Seconds())))
	return err
}

// take writes the backup to the file.
func (b *backUp) take(ctx context.Context, file io.Writer, version string, written, total *atomic.Int64) (backup.End, error) {
	if b.Db != "" {
		if info, err := os.Stat(strings.TrimPrefix(string(b.Db), "sqlite:")); err == nil {
			total.Store(info.Size())
		}
		return app.Backup(ctx, string(b.Db), counting{file, written}, version)
	}
	archive, err := b.archive(ctx)
	if err != nil {
		return backup.End{}, err
	}
	stream, err := archive.Backup(ctx)
	if err != nil {
		return backup.End{}, explain(archive, "backup", err)
	}
	defer stream.Close()
	_, end, err := backup.Copy(counting{file, written}, stream, func(h backup.Header) { total.Store(h.Pages * int64(h.PageSize)) })
	if damage, ok := errors.AsType[*backup.Damage](err); ok {
		err = fmt.Errorf("the archive at %s did not send a complete backup: %w; see its log", archive.Address(), damage)
	} else if errors.Is(err, client.ErrNoAnswer) {
		err = explain(archive, "backup", err)
	}
	return end, err
}

// counted returns the number of entities in a backup.
func counted(end backup.End) (n int64) {
	for _, count := range end.Entities {
		n += count
	}
	return n
}

// restore makes an archive from a backup.
type restore struct {
	File  string   `arg:"" help:"File that \"oda backup\" has written."`
	Db    database `required:"" placeholder:"DATABASE" help:"The new archive: sqlite:PATH. Nothing may be there yet."`
	Quiet bool     `short:"q" help:"Print no progress."`
}

// Help is what "oda restore --help" says besides the flags.
func (*restore) Help() string {
	return `Makes an archive from a backup of "oda backup", in a file that does not exist yet. The
archive appears when the whole backup was read and every part matched its checksum; a
backup that is damaged or was cut off is refused, with the place. If it is
interrupted, run it again.

For an archive on PostgreSQL, use PostgreSQL's own tools; docs/backup.md has the
commands.

Exit codes: 0 the archive is there; 1 it is not; 2 invalid command line.`
}

// Run restores the archive.
func (r *restore) Run(ctx context.Context, to streams) error {
	file, err := os.Open(r.File)
	if err != nil {
		return err
	}
	defer file.Close()
	began := time.Now()
	var read, total atomic.Int64
	stop := newProgress(to.err, r.Quiet).follow(func(took time.Duration) (string, float64) {
		return howFar("restoring", read.Load(), total.Load(), took, size)
	})
	header, end, err := app.Restore(string(r.Db), &stoppable{file, ctx}, func(n, of int64) {
		read.Store(n)
		total.Store(of)
	})
	stop()
	switch {
	case ctx.Err() != nil:
		return errors.New("stopped before the archive was restored; nothing was left")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("there is no room for the archive on the disk of %s; make room, or restore to another disk", r.Db)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(to.out, "%s up to position %s restored in %s, as of %s (backed up by oda %s)\ncheck the archive with: oda verify --db %s\n",
		manyOf(counted(end), "entity"), grouped(end.Position), time.Since(began).Round(10*time.Millisecond), end.Taken.Format(time.RFC3339), visible(header.Program), r.Db)
	return err
}

// stoppable is a file whose reading ends when the command is to stop.
type stoppable struct {
	io.Reader
	ctx context.Context
}

// Read implements io.Reader.
func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// writeFresh writes a backup or an export into a file that appears when it is complete.
func writeFresh(ctx context.Context, what, path, begins string, replace bool, write func(io.Writer) error) error {
	if err := spared(path); err != nil {
		return err
	}
	file, err := files.Begin(path, begins, replace)
	if err != nil {
		return notWritten(ctx, what, path, err)
	}
	if err = write(file); err != nil {
		file.Discard()
	} else {
		err = file.Commit()
	}
	return notWritten(ctx, what, path, err)
}

// notWritten says why there is no backup or export under its name.
func notWritten(ctx context.Context, what, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &failure{exitFailed, fmt.Sprintf("stopped before the %s was complete; there is no %s", what, path)}
	case errors.Is(err, files.ErrNotFile):
		return &failure{exitFailed, fmt.Sprintf("%s is not an ordinary file; choose another name", path)}
	case errors.Is(err, files.ErrExists):
		return &failure{exitFailed, fmt.Sprintf("%s exists already; choose another name, or replace it with --force", path)}
	case errors.Is(err, files.ErrInTheWay):
		return &failure{exitFailed, fmt.Sprintf("%s.part is in the way: it was not left by an earlier %s; move it, or choose another name", path, what)}
	case errors.Is(err, files.ErrLocked):
		return &failure{exitFailed, fmt.Sprintf("another process is writing %s; wait for it, or choose another name", path)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &failure{exitFailed, fmt.Sprintf("there is no room for the %s on the disk of %s; make room, or write it to another disk", what, path)}
	}
	return err
}

// spared refuses to write over a database, which may be the archive itself, or over a file
// that belongs to one.
func spared(path string) error {
	switch database := app.DatabaseOf(path); database {
	case "":
		return nil
	case path:
		return &failure{exitFailed, path + " is a database, perhaps an archive, and will not be overwritten; choose another name"}
	default:
		return &failure{exitFailed, fmt.Sprintf("%s belongs to the database %s and will not be overwritten; choose another name", path, database)}
	}
}
