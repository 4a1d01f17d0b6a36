package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"oda/internal/engine/migrate"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// countStep is a step of a later program. It adds ten rows, two in each part.
var countStep = postgres.Step{Name: "count", Checksum: "count", Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
	i := 0
	var err error
	if at != "" {
		i, err = strconv.Atoi(at)
	} else {
		_, err = tx.Exec(ctx, "CREATE TABLE counted (n integer PRIMARY KEY)")
	}
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO counted VALUES ($1), ($1 + 1)", i)
	}
	i += 2
	return migrate.Part{At: strconv.Itoa(i), Done: int64(i), Total: 10, End: i == 10}, err
}}

// opening opens an archive on another goroutine, with a program that has more steps.
func opening(ctx context.Context, dsn string, log *slog.Logger, tell func(migrate.Status), more ...postgres.Step) <-chan error {
	opened := make(chan error, 1)
	go func() {
		s, err := postgres.OpenNewer(ctx, dsn, log, tell, more...)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	return opened
}

func ignore(migrate.Status) {}

// madeArchive makes an archive that nobody has open.
func madeArchive(t *testing.T) (dsn string) {
	t.Helper()
	dsn = env.Postgres(t)
	must.Do(t, postgres.Prepare(t.Context(), dsn))
	return dsn
}

func TestASchemaStepContinuesWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	dsn := madeArchive(t)
	watch := connect(t, dsn)
	ctx, cut := context.WithCancel(t.Context())
	err := <-opening(ctx, dsn, slog.New(slog.DiscardHandler), func(at migrate.Status) {
		if at.Done == 4 {
			cut()
		}
	}, countStep)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the step was cut off, but it ended with %v", err)
	}
	if n := query[int](t, watch, "SELECT count(*) FROM counted"); n != 4 {
		t.Fatalf("%d rows were there when it was cut off, want 4", n)
	}
	if _, err := postgres.Open(t.Context(), dsn, slog.New(slog.DiscardHandler)); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("a program that does not know the step got %v", err)
	}
	var told []migrate.Status
	must.Do(t, <-opening(t.Context(), dsn, slog.New(slog.DiscardHandler), func(at migrate.Status) { told = append(told, at) }, countStep))
	if want := (migrate.Status{Number: 2, Last: 2, Name: "count", Done: 4, Total: 10}); told[0] != want {
		t.Errorf("the step continued from %+v", told[0])
	}
	if done := (migrate.Status{Number: 2, Last: 2, Name: "count", Done: 10, Total: 10}); !slices.Contains(told, done) {
		t.Errorf("tell was called with %+v, but not when the step was done", told)
	}
	if n := query[int](t, watch, "SELECT count(*) FROM counted"); n != 10 {
		t.Errorf("%d of 10 rows are there", n)
	}
	if n := query[int](t, watch, "SELECT count(*) FROM migration_progress"); n != 0 {
		t.Error("the progress of the step is left behind")
	}
}

// The time-outs of a role, a database or a DSN are for requests. A step takes as
// long as it needs.
func TestTimeoutsDoNotApplyToSchemaSteps(t *testing.T) {
	t.Parallel()
	dsn := madeArchive(t)
	locker, watch := connect(t, dsn), connect(t, dsn)
	name := query[string](t, watch, "SELECT current_database()")
	for _, setting := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		do(t, watch, "ALTER DATABASE "+name+" SET "+setting+" = '1s'")
	}
	do(t, locker, "BEGIN", "LOCK TABLE heads")
	opened := opening(t.Context(), dsn, slog.New(slog.DiscardHandler), ignore, postgres.Step{Name: "colour", SQL: "ALTER TABLE heads ADD COLUMN colour text"})
	await(t, "the step has waited longer than the bounds allow", patience, func() bool {
		return query[bool](t, watch, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '1500ms')`)
	})
	do(t, locker, "COMMIT")
	must.Do(t, <-opened)
}

func TestAProcessWaitsForAnotherThatChangesTheSchema(t *testing.T) {
	t.Parallel()
	dsn := madeArchive(t)
	locker := connect(t, dsn)
	do(t, locker, "SELECT pg_advisory_lock(1868849409)")
	var log env.Journal
	told := make(chan migrate.Status, 100)
	opened := opening(t.Context(), dsn, log.Logger(), func(at migrate.Status) {
		select {
		case told <- at:
		default:
		}
	}, countStep)
	if at := <-told; !at.Waiting || !strings.Contains(at.String(), "another process") {
		t.Errorf("told %+v", at)
	}
	// After several attempts to get the lock it still waits.
	for range 5 {
		<-told
	}
	select {
	case err := <-opened:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if got := strings.Count(log.String(), "waiting for another process that changes the schema"); got != 1 {
		t.Errorf("the log says %d times that it waits:\n%s", got, log.String())
	}
	do(t, locker, "SELECT pg_advisory_unlock(1868849409)")
	must.Do(t, <-opened)
	if !strings.Contains(log.String(), "name=count") {
		t.Errorf("the log does not name the step:\n%s", log.String())
	}
}

// A step that needs the table of heads for itself, and gives up soon, waits for whoever
// reads it for long, but lets others go on meanwhile.
func TestAnUpgradeDuringADumpHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dsn := madeArchive(t)
	dump, older := connect(t, dsn), connect(t, dsn)
	do(t, dump, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM heads")
	upgraded := opening(t.Context(), dsn, slog.New(slog.DiscardHandler), ignore,
		postgres.Step{Name: "colour", SQL: "SET LOCAL lock_timeout = '200ms'; ALTER TABLE heads ADD COLUMN colour text"})
	do(t, older, "SET statement_timeout = '5s'")
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		do(t, older, "SELECT version FROM heads", "UPDATE heads SET version = version")
	}
	select {
	case err := <-upgraded:
		t.Fatalf("the upgrade did not wait for the dump: %v", err)
	default:
	}
	do(t, dump, "COMMIT")
	if err := <-upgraded; err != nil {
		t.Error(err)
	}
}

// An archive whose tables were made by another text of the schema is refused, and nothing
// is changed. So is one of a program from before the first release, which had more steps,
// and one of a newer program.
func TestAnArchiveWithOtherTablesIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change string
		want   error
		says   string
	}{
		"another text": {"UPDATE migrations SET checksum = 'x'", migrate.ErrOther, "oda export"},
		"more steps": {
			"UPDATE migrations SET checksum = 'x'; INSERT INTO migrations (number, name, checksum) VALUES (2, 'listed', 'y')", migrate.ErrOther, "oda export",
		},
		"a newer program": {"INSERT INTO migrations (number, name, checksum) SELECT max(number) + 1, 'later', 'x' FROM migrations", migrate.ErrNewer, "newer than this program"},
	} {
		dsn := madeArchive(t)
		do(t, connect(t, dsn), strings.Split(test.change, "; ")...)
		for command, open := range map[string]func(context.Context, string, *slog.Logger) error{
			"serve": func(ctx context.Context, dsn string, log *slog.Logger) error {
				_, err := postgres.Open(ctx, dsn, log)
				return err
			},
			"backup": func(ctx context.Context, dsn string, log *slog.Logger) error {
				_, err := postgres.OpenExisting(ctx, dsn, log)
				return err
			},
		} {
			err := open(t.Context(), dsn, slog.New(slog.DiscardHandler))
			if !errors.Is(err, test.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %s: the error is %v", name, command, err)
			}
		}
	}
}

// Verify must ask for every index that the schema makes, or nobody notices that one was
// dropped. The table of the progress of steps has at most one row, and needs none.
func TestVerifyAsksForEveryIndex(t *testing.T) {
	t.Parallel()
	made := query[[]string](t, connect(t, madeArchive(t)), `SELECT array_agg(name ORDER BY name COLLATE "C") FROM (
		SELECT indexname::text AS name FROM pg_indexes WHERE schemaname = current_schema() AND tablename <> 'migration_progress'
		UNION SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace) n`)
	if diff := cmp.Diff(made, postgres.MadeBySchema); diff != "" {
		t.Errorf("the schema makes (-), and Verify asks for (+):\n%s", diff)
	}
}

// A row of the log may have hundreds of changes, as imports write it. If it is unpacked for each
// value that is read of it, verifying takes hours.
func TestARowOfTheLogIsUnpackedOnce(t *testing.T) {
	t.Parallel()
	conn := connect(t, madeArchive(t))
	for _, statement := range postgres.Unpacking() {
		plan := strings.Join(must.Get(pgx.CollectRows(must.Get(conn.Query(t.Context(), "EXPLAIN "+statement))(t), pgx.RowTo[string]))(t), "\n")
		arrays := strings.Count(statement, "ARRAY(SELECT unnest")
		if n := strings.Count(plan, "SubPlan"); arrays == 0 || n != arrays {
			t.Errorf("%d arrays are unpacked in %d places:\n%s\n%s", arrays, n, statement, plan)
		}
	}
}

func TestTheStepsOfANewDatabaseAreToldAsSuch(t *testing.T) {
	var told []migrate.Status
	s := must.Get(postgres.Open(t.Context(), env.Postgres(t), slog.New(slog.DiscardHandler), func(at migrate.Status) { told = append(told, at) }))(t)
	defer s.Close()
	if len(told) == 0 || slices.ContainsFunc(told, func(at migrate.Status) bool { return !at.New }) {
		t.Errorf("of a new database, this was told: %+v", told)
	}
}
