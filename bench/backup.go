package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Arms and figures of backups.
const (
	copied   = "cp, then sync"
	whenDown = ", stopped"
	restored = ", restore"

	moved figure = "bytes per second"
)

// runBackup compares a backup of an archive that is served with a copy of its file, which
// nobody may write meanwhile. All of them leave a file that is on disk.
func runBackup(ctx context.Context, s *stage) error {
	count := s.plan.entities / 5
	var arms []arm
	for i, program := range s.odas {
		if err := exec.CommandContext(ctx, program.path, "backup", "--help").Run(); err != nil {
			s.say("  an earlier oda has no backups")
			return nil
		}
		srv, err := s.startOda(ctx, program, onSQLite)
		if err != nil {
			return err
		}
		if err := srv.storeEntities(ctx, "sbd", count); err != nil {
			return err
		}
		if _, err := srv.restart(ctx); err != nil { // everything is in the file
			return err
		}
		path := strings.TrimPrefix(srv.db, "sqlite:")
		stopped := s.file(".db")
		if err := execute(ctx, "cp", path, stopped); err != nil {
			return err
		}
		file, target := s.file(".backup"), s.file(".db")
		if i == 0 {
			arms = append(arms, fileArm(copied, path, nil, target, func(ctx context.Context) error {
				return errors.Join(execute(ctx, "cp", path, target), execute(ctx, "sync", target))
			}))
		}
		arms = append(arms,
			fileArm(srv.arm(""), path, srv.process, file, func(ctx context.Context) error {
				return execute(ctx, program.path, "backup", "-q", "-o", file, "--url", "http://"+srv.addr)
			}),
			fileArm(srv.arm(whenDown), path, nil, file, func(ctx context.Context) error {
				return execute(ctx, program.path, "backup", "-q", "-o", file, "--db", "sqlite:"+stopped)
			}),
			fileArm(srv.arm(restored), path, nil, target, func(ctx context.Context) error {
				return execute(ctx, program.path, "restore", "-q", file, "--db", "sqlite:"+target)
			}))
	}
	columns := append([]column{over(moved), over(moved, copied)}, plain(took, memory)...)
	return s.measure(ctx, table{sized: true, Columns: columns}, arms)
}

// fileArm measures how fast something copies a file, and how much memory that takes in
// the server that does it, if one does. What was made before is removed first, from the
// disk too: freeing a gigabyte would count for whoever syncs next.
func fileArm(name, path string, server *process, makes string, do func(context.Context) error) arm {
	return arm{name: name, run: func(ctx context.Context, _ time.Duration) (sample, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.RemoveAll(makes), execute(ctx, "sync")); err != nil {
			return nil, err
		}
		got, err := effort(server, func() error { return do(ctx) })
		if err == nil {
			got[moved] = float64(info.Size()) / got[took]
		}
		return got, err
	}}
}

// execute runs a program to its end.
func execute(ctx context.Context, program string, args ...string) error {
	_, err := run(ctx, "", program, args...)
	return err
}
