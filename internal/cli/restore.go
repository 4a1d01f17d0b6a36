package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"oda/internal/app"
)

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

An archive on PostgreSQL is restored with PostgreSQL's own tools; docs/backup.md has the
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
