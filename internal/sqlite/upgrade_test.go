package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"

	"oda/internal/engine/migrate"
	"oda/internal/test/fixture"
)

// An archive whose upgrade is cut off in the middle of each part, and started again,
// ends up like one that was upgraded at once.
func TestAnUpgradeContinuesWhereverItIsCutOff(t *testing.T) {
	archives, err := fixture.All("../../testdata/archives", "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range archives {
		steps, err := schemaSteps(10, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		path := restored(t, old)
		cuts := 0
		for ; ; cuts++ {
			ctx, cut := context.WithCancel(t.Context())
			told := 0
			s, err := openWith(ctx, path, slog.New(slog.DiscardHandler), steps, func(migrate.Status) {
				// It is called when a part begins, when it is done, and when the next begins.
				if told++; told == 3 {
					cut()
				}
			})
			cut()
			if err == nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, context.Canceled) || cuts > 1000 {
				t.Fatalf("%s: cut off %d times, it ends with %v", old.Name(), cuts, err)
			}
		}
		if old.Schema == 1 && cuts < 10 {
			t.Errorf("%s was cut off only %d times", old.Name(), cuts)
		}
		if diff := cmp.Diff(everyRow(t, open(t, restored(t, old))), everyRow(t, open(t, path))); diff != "" {
			t.Errorf("%s upgraded at once (-) and with %d cuts (+):\n%s", old.Name(), cuts, diff)
		}
	}
}

// restored returns a copy of an archive of an earlier program.
func restored(t *testing.T, old *fixture.Archive) string {
	t.Helper()
	content, err := old.Content()
	if err != nil {
		t.Fatal(err)
	}
	path := archivePath(t)
	if err := os.WriteFile(path, content, 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// everyRow returns all rows of all tables, except those that SQLite uses for an
// index of words.
func everyRow(t *testing.T, s *Store) (rows []string) {
	t.Helper()
	var tables []string
	err := s.writer.query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'
		AND NOT EXISTS (SELECT 1 FROM sqlite_schema v WHERE v.sql LIKE '%VIRTUAL%' AND sqlite_schema.name LIKE v.name || '\_%' ESCAPE '\') ORDER BY name`,
		func(stmt *sqlite.Stmt) error { tables = append(tables, stmt.ColumnText(0)); return nil })
	for _, table := range tables {
		err = errors.Join(err, s.writer.query("SELECT * FROM "+table, func(stmt *sqlite.Stmt) error {
			line := table
			for i := range stmt.ColumnCount() {
				line += fmt.Sprintf(" %s=%q", stmt.ColumnName(i), stmt.ColumnText(i))
			}
			rows = append(rows, line)
			return nil
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

// One damaged document must not keep the archive from being opened.
func TestADamagedDocumentDoesNotStopAnUpgrade(t *testing.T) {
	archives, err := fixture.All("../../testdata/archives", "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"text = x'7b22'", "slots = x'ffff'"} {
		path := restored(t, archives[0])
		script(t, path, "UPDATE versions SET "+damage+" WHERE position = (SELECT position FROM heads WHERE kind = 1 LIMIT 1)")
		var log bytes.Buffer
		s, err := Open(t.Context(), path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "a stored document is damaged") || !strings.Contains(log.String(), "identifier=") {
			t.Errorf("%s: the log does not name the document:\n%s", damage, log.String())
		}
	}
}
