package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"oda/internal/engine/migrate"
	"oda/internal/postgres"
	"oda/internal/test/env"
)

// An archive whose upgrade is cut off in the middle of each part, and started again,
// ends up like one that was upgraded at once.
func TestAnUpgradeContinuesWhereverItIsCutOff(t *testing.T) {
	t.Parallel()
	for _, old := range env.Fixtures(t, "postgres") {
		dsn := env.Restore(t, old)
		cuts := 0
		for ; ; cuts++ {
			ctx, cut := context.WithCancel(t.Context())
			told := 0
			err := postgres.PrepareUntil(ctx, dsn, 0, 10, func(migrate.Status) {
				// It is called when a part begins, when it is done, and when the next begins.
				if told++; told == 3 {
					cut()
				}
			})
			cut()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) || cuts > 1000 {
				t.Fatalf("%s: cut off %d times, it ends with %v", old.Name(), cuts, err)
			}
		}
		if old.Schema == 3 && cuts < 10 {
			t.Errorf("%s was cut off only %d times", old.Name(), cuts)
		}
		whole := env.Restore(t, old)
		atOnce, inParts := follow(t, open(t, whole), 0, 10_000), follow(t, open(t, dsn), 0, 10_000)
		if diff := cmp.Diff(everyRow(t, whole), everyRow(t, dsn)); diff != "" {
			t.Errorf("%s upgraded at once (-) and with %d cuts (+):\n%s", old.Name(), cuts, diff)
		}
		if diff := cmp.Diff(atOnce, inParts); diff != "" || len(atOnce) < 20 {
			t.Errorf("%d changes of %s upgraded at once (-) and with %d cuts (+):\n%s", len(atOnce), old.Name(), cuts, diff)
		}
	}
}

// everyRow returns all rows of all tables, except those about the steps and those of
// the log of changes, which can be split into rows in many ways.
func everyRow(t *testing.T, dsn string) (all []string) {
	t.Helper()
	conn := connect(t, dsn)
	rows := func(sql string) []string {
		found, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	for _, table := range rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'migration%' AND tablename NOT IN ('recordings', 'rounds') ORDER BY 1") {
		all = append(all, rows("SELECT '"+table+" ' || t::text FROM "+table+" t ORDER BY 1")...)
	}
	return all
}

// One damaged document must not keep the archive from being opened.
func TestADamagedDocumentDoesNotStopAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{`text = '{"'`, "slots = '{1}'"} {
		dsn := env.Restore(t, env.Fixtures(t, "postgres")[0])
		do(t, connect(t, dsn), "UPDATE versions v SET "+damage+" FROM heads h WHERE h.kind = 1 AND v.kind = 1 AND v.identifier = h.identifier AND v.version = h.version")
		var log env.Journal
		s, err := postgres.Open(t.Context(), dsn, log.Logger())
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
