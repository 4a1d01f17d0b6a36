package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"oda/internal/app"
	"oda/internal/files"
)

// writeFresh writes a backup or an export into a file that appears when it is complete.
func writeFresh(ctx context.Context, what, path, begins string, replace bool, write func(io.Writer) error) error {
	if err := spared(path); err != nil {
		return err
	}
	file, err := files.CreateFresh(path, begins, replace)
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
		return &failure{exitFailed, path + " is a database, perhaps an archive, and is not written over; choose another name"}
	default:
		return &failure{exitFailed, fmt.Sprintf("%s belongs to the database %s, and is not written over; choose another name", path, database)}
	}
}
