package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"oda"
	"oda/internal/engine/migrate"
	"oda/internal/postgres"
	"oda/internal/test/env"
)

// olderArchive makes a database with the first version of the schema and that many
// entities.
func olderArchive(t *testing.T, entities int) (dsn string) {
	t.Helper()
	dsn = env.Postgres(t)
	if err := postgres.PrepareUntil(t.Context(), dsn, 1, postgres.StepRows); err != nil {
		t.Fatal(err)
	}
	do(t, connect(t, dsn), fmt.Sprintf(`INSERT INTO heads SELECT 1, 'sbd-' || to_char(i, 'FM000000'), 1, 'anna', i, 'anna', i, 0 FROM generate_series(1, %d) i;
		UPDATE counts SET n = %d WHERE kind = 1 AND shard = 0`, entities, entities))
	return dsn
}

// opening opens an archive on another goroutine.
func opening(ctx context.Context, dsn string, log *slog.Logger, tell ...func(migrate.Status)) <-chan error {
	opened := make(chan error, 1)
	go func() {
		s, err := postgres.Open(ctx, dsn, log, tell...)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	return opened
}

func TestASchemaStepContinuesWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	const entities = 2*postgres.StepRows + 100
	dsn := olderArchive(t, entities)
	watch := connect(t, dsn)

	ctx, cut := context.WithCancel(t.Context())
	err := <-opening(ctx, dsn, slog.New(slog.DiscardHandler), func(at migrate.Status) {
		if at.Done == postgres.StepRows {
			cut()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the step was cut off, but it ended with %v", err)
	}
	if n := query[int](t, watch, "SELECT count(*) FROM heads WHERE listed_on IS NOT NULL"); n != postgres.StepRows {
		t.Fatalf("%d heads were done when it was cut off, want %d", n, postgres.StepRows)
	}
	const written = "SELECT xmin::text FROM heads WHERE identifier = 'sbd-000001'"
	before := query[string](t, watch, written)
	// A process of the older version is still running and writes.
	do(t, watch, "INSERT INTO heads VALUES (1, 'sbd-000000', 1, 'anna', 1, 'anna', 1, 0)",
		"UPDATE heads SET last_modified_on = 999999999 WHERE identifier = 'sbd-000002'")

	var told []migrate.Status
	s, err := postgres.Open(t.Context(), dsn, slog.New(slog.DiscardHandler), func(at migrate.Status) {
		at.Last = 0 // there may be any number of later steps
		told = append(told, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if told[0] != (migrate.Status{Number: 2, Name: "listed", Done: postgres.StepRows, Total: entities}) {
		t.Errorf("the step continued from %+v", told[0])
	}
	if done := (migrate.Status{Number: 2, Name: "listed", Done: entities, Total: entities}); !slices.Contains(told, done) {
		t.Errorf("tell was called with %+v, but not when the step was done", told)
	}
	if after := query[string](t, watch, written); after != before {
		t.Error("a head that was done before the cut was done again")
	}
	if n := query[int](t, watch, "SELECT count(*) FROM heads WHERE listed_on <> last_modified_on"); n != 0 {
		t.Errorf("%d heads are wrong", n)
	}
	if n := query[int](t, watch, "SELECT count(*) FROM migration_progress"); n != 0 {
		t.Error("the progress of the step is left behind")
	}
	listed := 0
	err = s.List(t.Context(), oda.Query{Kind: oda.SBDefinition, Order: oda.ByModification}, func(string, oda.Instant) error { listed++; return nil })
	if err != nil || listed != entities+1 {
		t.Errorf("%d of %d are listed, %v", listed, entities+1, err)
	}
}

// What an older program wrote while the steps run would be missing from the
// catalogue and from the index of days.
func TestAnOlderProgramCannotWriteOnceTheStepsBegin(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	if err := postgres.PrepareUntil(t.Context(), dsn, 3, postgres.StepRows); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	const head = "INSERT INTO heads VALUES (3, 'eb-%s', 1, 'anna', 1, 'anna', 1, 0, 1) RETURNING *"
	const body = `INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text)
		SELECT kind, identifier, version, 'anna', 1, 0, 0, NULL, '{}', '{}' FROM head`
	older := map[string]string{
		"create": "WITH head AS (" + fmt.Sprintf(head, "new") + ") " + body,
		"update": "WITH head AS (UPDATE heads SET version = version + 1 WHERE identifier = 'eb-old' RETURNING *) " + body,
		"record": `WITH head AS (UPDATE heads SET last_sequence = last_sequence + 1 WHERE identifier = 'eb-old' RETURNING *)
			INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text)
			SELECT kind, identifier, last_sequence, version, 'anna', 1, '{"request":"r"}' FROM head`,
	}
	do(t, conn, "WITH head AS ("+fmt.Sprintf(head, "old")+") "+body, "INSERT INTO creations VALUES (3, 'eb-old', 'anna', 1)", older["update"], older["record"])

	for last := 4; last <= 5; last++ {
		if err := postgres.PrepareUntil(t.Context(), dsn, last, postgres.StepRows); err != nil {
			t.Fatal(err)
		}
		for what, statement := range older {
			_, err := conn.Exec(t.Context(), statement)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23502" {
				t.Errorf("after step %d, to %s gives %v", last, what, err)
			}
		}
	}
	open(t, dsn)
	if got := query[string](t, conn, "SELECT string_agg(identifier || ' ' || version || ' ' || last_sequence, ',') FROM heads"); got != "eb-old 2 1" {
		t.Errorf("the heads are %s", got)
	}
}

// The records of a program that knows nothing of the log of changes would be
// missing in it.
func TestAnOlderProgramCannotWriteOnceThereIsALogOfChanges(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	if err := postgres.PrepareUntil(t.Context(), dsn, 8, postgres.StepRows); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	older := map[string]string{
		"store": `WITH head AS (UPDATE heads SET version = version + 1 RETURNING *)
			INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal)
			SELECT kind, identifier, version, 'anna', 1, 0, 0, NULL, '{}', '{}', '', archive_version_seal(kind, identifier, version, 'anna', 1, 0, 0, NULL, '{}', '') FROM head`,
		"record": `WITH head AS (UPDATE heads SET last_sequence = last_sequence + 1 RETURNING *)
			INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal)
			SELECT kind, identifier, last_sequence, version, 'anna', 1, '{}', '', archive_record_seal(identifier, last_sequence, version, 'anna', 1, NULL, '') FROM head`,
	}
	do(t, conn, "INSERT INTO heads VALUES (3, 'eb-old', 0, 'anna', 1, 'anna', 1, 0, 1, NULL, 0)", older["store"], older["record"])
	// The parts of the step are two: the tables are made, and then filled.
	ctx, cut := context.WithCancel(t.Context())
	told := 0
	err := postgres.PrepareUntil(ctx, dsn, 9, 1, func(migrate.Status) {
		if told++; told == 2 {
			cut()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the step was not cut off: %v", err)
	}
	for range 2 {
		for what, statement := range older {
			_, err := conn.Exec(t.Context(), statement)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42883" {
				t.Errorf("to %s gives %v", what, err)
			}
		}
		if err := postgres.PrepareUntil(t.Context(), dsn, 9, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := tell(follow(t, open(t, dsn), 0, 10)); got != "eb-old 1 0-0, eb-old 1 1-1" {
		t.Errorf("the changes are %s", got)
	}
}

// The time-outs of a role, a database or a DSN are for requests. A step takes as
// long as it needs.
func TestTimeoutsDoNotApplyToSchemaSteps(t *testing.T) {
	t.Parallel()
	dsn := olderArchive(t, 10)
	locker, watch := connect(t, dsn), connect(t, dsn)
	name := query[string](t, watch, "SELECT current_database()")
	for _, setting := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		do(t, watch, "ALTER DATABASE "+name+" SET "+setting+" = '1s'")
	}
	do(t, locker, "BEGIN", "LOCK TABLE heads")
	opened := opening(t.Context(), dsn, slog.New(slog.DiscardHandler))
	await(t, "the step has waited longer than the bounds allow", patience, func() bool {
		return query[bool](t, watch, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '1500ms')`)
	})
	do(t, locker, "COMMIT")
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

func TestAProcessWaitsForAnotherThatChangesTheSchema(t *testing.T) {
	t.Parallel()
	dsn := olderArchive(t, 10)
	locker := connect(t, dsn)
	do(t, locker, "SELECT pg_advisory_lock(1868849409)")
	var log env.Journal
	told := make(chan migrate.Status, 100)
	opened := opening(t.Context(), dsn, log.Logger(), func(at migrate.Status) {
		select {
		case told <- at:
		default:
		}
	})
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
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "name=listed") {
		t.Errorf("the log does not name the step:\n%s", log.String())
	}
}

// A database that has the first form of the second step needs nothing more.
func TestADatabaseThatHadTheStepInSQLIsKnown(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	open(t, dsn)
	got := query[string](t, connect(t, dsn), "SELECT checksum FROM migrations WHERE number = 2 AND name = 'listed'")
	if got != "5e30db340208183f583999e4293f5c960865bea172f99d4ac394142b973e69b4" {
		t.Errorf("the checksum is %s", got)
	}
}

// The tables of creations and of their keys once had other names.
func TestCreationsOfAnOlderArchiveAreStillKnown(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	if err := postgres.PrepareUntil(t.Context(), dsn, 2, postgres.StepRows); err != nil {
		t.Fatal(err)
	}
	key := oda.Key{Value: "key"}
	conn := connect(t, dsn)
	do(t, conn, `INSERT INTO heads VALUES (1, 'sbd-1', 1, 'anna', 5, 'anna', 5, 0, 5)`,
		`INSERT INTO births VALUES (1, 'sbd-1', 'anna', 5)`,
		`INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, slots, text)
			VALUES (1, 'sbd-1', 1, 'anna', 5, 0, 0, '{}', '{}')`,
		fmt.Sprintf(`INSERT INTO creations VALUES (1, 'key', 'sbd-1', '\x%x')`, key.Digest))
	s := open(t, dsn)
	var listed []string
	err := s.List(t.Context(), oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "anna", Match: oda.UserEquals},
		func(id string, _ oda.Instant) error { listed = append(listed, id); return nil })
	if err != nil || !slices.Equal(listed, []string{"sbd-1"}) {
		t.Errorf("the listing by user has %v, %v", listed, err)
	}
	e, err := s.Created(t.Context(), oda.SBDefinition, key)
	if err != nil || e == nil || e.ID != "sbd-1" {
		t.Errorf("the key created %v, %v", e, err)
	}
	if left := query[int](t, conn, "SELECT count(*) FROM pg_class WHERE relname LIKE 'births%'"); left != 0 {
		t.Errorf("%d tables and indexes have the old name", left)
	}
}

// Verify must ask for every index that the steps make, or nobody notices that one was
// dropped. The table of their progress has at most one row, and needs none.
func TestVerifyAsksForEveryIndex(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	open(t, dsn)
	made := query[[]string](t, connect(t, dsn), `SELECT array_agg(name ORDER BY name COLLATE "C") FROM (
		SELECT indexname::text AS name FROM pg_indexes WHERE schemaname = current_schema() AND tablename <> 'migration_progress'
		UNION SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace) n`)
	if diff := cmp.Diff(made, postgres.MadeBySteps); diff != "" {
		t.Errorf("the steps make (-), and Verify asks for (+):\n%s", diff)
	}
}

// A step that needs the table of heads for itself waits for whoever reads it for long, but
// lets others go on meanwhile.
func TestAnUpgradeDuringADumpHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	if err := postgres.PrepareUntil(t.Context(), dsn, 12, postgres.StepRows); err != nil {
		t.Fatal(err)
	}
	dump, older := connect(t, dsn), connect(t, dsn)
	do(t, dump, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM heads")
	upgraded := make(chan error, 1)
	go func() { upgraded <- postgres.PrepareUntil(t.Context(), dsn, 0, postgres.StepRows) }()
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

func TestTheStepsOfANewDatabaseAreToldAsSuch(t *testing.T) {
	var told []migrate.Status
	s, err := postgres.Open(t.Context(), env.Postgres(t), slog.New(slog.DiscardHandler), func(at migrate.Status) { told = append(told, at) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(told) == 0 || slices.ContainsFunc(told, func(at migrate.Status) bool { return !at.New }) {
		t.Errorf("of a new database, this was told: %+v", told)
	}
}
