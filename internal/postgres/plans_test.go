package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/proof"
	"oda/internal/test/suite"
	"oda/summary"
)

// hot is an operation whose statements must not become slower as the archive
// grows.
type hot struct {
	name, purpose string
	run           func(t *testing.T, s *postgres.Store, try int) error
	buffers       int // pages that one statement may touch at most
}

// hotOperations returns all hot operations. An operation that creates an entity
// creates another one with each try.
func hotOperations() []hot {
	ctx := context.Background()
	list := func(q oda.Query) func(*testing.T, *postgres.Store, int) error {
		q.Kind, q.Limit = oda.SBDefinition, 101
		return func(_ *testing.T, s *postgres.Store, _ int) error {
			return s.List(ctx, q, func(string, oda.Instant) error { return nil })
		}
	}
	after := oda.Instant(1_000_000)
	record := func(first, blocks int) func(*testing.T, *postgres.Store, int) error {
		return func(_ *testing.T, s *postgres.Store, try int) error {
			var adds []oda.Append
			for i := range blocks {
				adds = append(adds, adding(fmt.Sprint("id-", first+i*10), "x", fmt.Sprint("key-", blocks, "-", try, "-", i)))
			}
			_, errs := s.AppendTogether(ctx, adds)
			return errs[0]
		}
	}
	return append([]hot{
		{
			"Find the blocks of a night", "The blocks that have calls on one of two days.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.BlocksOn(ctx, oda.Days{First: -1, Last: 0}, 100)
				return err
			}, 48,
		},
		{
			"Read a block of a night", "Its records on these days: which there are, and then a part of them.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				for _, err := range s.RecordsOn(ctx, "id-1000", oda.Days{First: -1, Last: 0}, oda.AllSequences) {
					if err != nil {
						return err
					}
				}
				return nil
			}, 24,
		},
		{
			"Get", "Reading the current version of an entity: its head and its body.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Get(ctx, sbd("id-1000"))
				return err
			}, 16,
		},
		{
			"Get the last of many versions", "The same of an entity with 2,000 versions, and with its records carried over to another one.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, block("id-5000"))
				if err != nil {
					return err
				}
				put := next(t, block("id-5000"), e.Metadata)
				put.KeepRecords, put.Compare = true, oda.KeptFields
				_, err = s.Put(ctx, []oda.Put{put})
				return err
			}, 60,
		},
		{
			"An old version", "Reading one of 2,000 versions by its number.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Version(ctx, block("id-5000"), 1000)
				return err
			}, 24,
		},
		{
			"As of an instant", "Finding one of 2,000 versions by an instant, and the last record of then, of 10,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Version(ctx, block("id-5000"), 1000)
				if err != nil {
					return err
				}
				_, err = s.AsOf(ctx, block("id-5000"), e.Metadata.LastModifiedOn)
				if err == nil {
					_, err = s.AsOf(ctx, block("id-6000"), 6_015_000)
				}
				if err == nil {
					_, err = s.AsOf(ctx, sbd("id-1000"), math.MaxInt64)
				}
				return err
			}, 160,
		},
		{
			"A page of versions", "What is known of 100 versions, of 2,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Versions(ctx, block("id-5000"), 1900, 100)
				return err
			}, 100 * 12,
		},
		{
			"Records of a block", "Reading a part of the records of a block, in order.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, block("id-1000"))
				if err != nil {
					return err
				}
				return e.Render(1 << 20)
			}, 24,
		},
		{
			"First store", "PUT of an identifier that is new.",
			func(t *testing.T, s *postgres.Store, try int) error {
				_, err := s.Put(ctx, []oda.Put{write(t, sbd(fmt.Sprint("new-", try)), `{"a":1}`)})
				return err
			}, 64,
		},
		{
			"Update", "PUT of a stored entity with the metadata that it has.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, sbd("id-2000"))
				if err == nil {
					_, err = s.Put(ctx, []oda.Put{next(t, sbd("id-2000"), e.Metadata)})
				}
				return err
			}, 64,
		},
		{
			"Update 32", "The same for 32 entities that had to wait, in one statement.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				var puts []oda.Put
				for i := range 32 {
					ref := sbd(fmt.Sprint("id-", 9000+i*10))                                                                  // they come late in the index
					m := oda.Metadata{Version: 1, CreatedBy: "anna", CreatedOn: 1, LastModifiedBy: "anna", LastModifiedOn: 1} // until there is one
					if e, err := s.Get(ctx, ref); err == nil {
						m = e.Metadata
					}
					puts = append(puts, next(t, ref, m))
				}
				entities, err := s.UpdateTogether(ctx, puts)
				if err == nil && slices.Contains(entities, nil) {
					err = errors.New("an update was refused")
				}
				return err
			}, 32 * 32,
		},
		{
			"Create with a key", "POST of a collection with an Idempotency-Key: the key is claimed, then the entity is stored.",
			func(t *testing.T, s *postgres.Store, try int) error {
				put := write(t, block(fmt.Sprint("created-", try)), `{"a":1}`)
				_, err := s.Create(ctx, put, &oda.Key{Value: fmt.Sprint("fresh-", try), Digest: sha256.Sum256(nil)})
				return err
			}, 64,
		},
		{
			"Created before", "What an Idempotency-Key created before.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Created(ctx, oda.ExecutionBlock, oda.Key{Value: "created-1000", Digest: sha256.Sum256(nil)})
				return err
			}, 24,
		},
		{"Record one", "One record for one block: its head is moved, and the record is added.", record(1000, 1), 48},
		{"Record 64", "A batch of 64 records for 64 blocks.", record(1000, 64), 64 * 32},
		{"Record one in a long block", "The same with a block that has 10,000 records.", record(6000, 1), 48},
		{"Record two in long blocks", "The same with two such blocks.", record(6000, 2), 64},
		{
			"Record again", "A record with a key that is known: nothing is added, and the record is found.",
			func(_ *testing.T, s *postgres.Store, _ int) error {
				for _, again := range []oda.Append{adding("id-1050", "y", "seed-4"), adding("id-6000", "y", "seed-9000-"+strings.Repeat("x", 30))} {
					if _, err := one(ctx, s, again); oda.CodeOf(err) != oda.KeyReused { // with another body
						return fmt.Errorf("the key is not known: %w", err)
					}
				}
				return nil
			}, 32,
		},
		{
			"Say", "A status, with a key: the head is locked, and then the status is added. Few entities have another one.",
			func(t *testing.T, s *postgres.Store, try int) error {
				for i, ref := range []oda.Ref{block("id-7000"), block("id-7001"), sbd("id-2000")} {
					key := &oda.Key{Value: fmt.Sprint("said-", try, "-", i)}
					if _, err := s.Say(ctx, oda.NewStatus{Ref: ref, Text: "Observed", Key: key, By: "anna", Now: now()}); err != nil {
						return err
					}
				}
				return nil
			}, 48,
		},
		{
			"Say 32", "The same for 32 entities that had to wait, in one statement.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				var says []oda.NewStatus
				for i := range 32 {
					says = append(says, oda.NewStatus{Ref: sbd(fmt.Sprint("id-", 9000+i*10)), Text: "Observed", By: "anna", Now: now()})
				}
				return errors.Join(s.SayTogether(ctx, says)...)
			}, 32 * 24,
		},
		{
			"Say again", "A status with a key that is known, of 2,000 statuses: nothing is added, and the status is found.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Say(ctx, oda.NewStatus{Ref: block("id-7000"), Text: "Observed", Key: &oda.Key{Value: "seed-1000", Digest: sha256.Sum256(nil)}, Now: now()})
				if oda.CodeOf(err) != oda.KeyReused { // with another body
					return fmt.Errorf("the key is not known: %w", err)
				}
				return nil
			}, 48,
		},
		{
			"Status", "The current status, of 2,000, and that of an entity that has none.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Status(ctx, block("id-7000"))
				if err == nil {
					_, err = s.Status(ctx, block("id-7001"))
				}
				return err
			}, 24,
		},
		{
			"A page of statuses", "100 statuses, of 2,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.StatusesBefore(ctx, block("id-7000"), 1900, 100)
				return err
			}, 24,
		},
		{
			following, "A version is stored, numbered, and read from the log of changes.",
			func(t *testing.T, s *postgres.Store, try int) error {
				end, err := s.End(ctx)
				if err == nil {
					_, err = s.Put(ctx, []oda.Put{write(t, sbd(fmt.Sprint("followed-", try)), `{"a":1}`)})
				}
				if err == nil {
					_, _, err = s.Changes(ctx, end, 100)
				}
				return err
			}, 64,
		},
		{"List by creation", "A page of a listing by created_on.", list(oda.Query{Order: oda.ByCreation, After: &after}), 16},
		{"List by modification", "A page of a listing by last_modified_on.", list(oda.Query{Order: oda.ByModification, After: &after}), 24},
		{"List by user", "A page of a listing by user, equals.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserEquals, User: "user-7"}), 16},
		{"List by user, starts with", "A page of a listing by the beginning of a user.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserStartsWith, User: "user-4"}), 32},
		{"List by user, contains", "A page of a listing by a part of a user.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserContains, User: "r-4"}), 32},
	}, slices.Concat(notableOperations(), searchOperations())...)
}

// plan is how PostgreSQL ran a statement.
type plan struct {
	statement, text string
	nodes           []node
	buffers         int
}

// node is a step of a plan.
type node struct {
	Type  string  `json:"Node Type"`
	Rows  float64 `json:"Actual Rows"`
	Table string  `json:"Relation Name"`
	Hit   int     `json:"Shared Hit Blocks"`
	Read  int     `json:"Shared Read Blocks"`
	Plans []node
}

// plans collects plans. The archive also numbers changes all the time, in parallel
// with each operation.
type plans struct {
	mu  sync.Mutex
	all []plan
}

func (p *plans) add(one plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, one)
}

// take returns the plans of an operation.
func (p *plans) take(h hot) (all []plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.all = p.all, nil
	return slices.DeleteFunc(all, func(one plan) bool {
		return strings.Contains(one.statement, " rounds") && !strings.Contains(one.statement, "nextval") && h.name != following ||
			strings.Contains(one.statement, " migrations ") // which the archive looks at every second
	})
}

// following is the name of the one operation that numbers changes.
const following = "Follow changes"

// planned opens an archive on one connection. The server explains the statements as
// they run, so they are those of the archive, with their real plans.
func planned(t *testing.T, dsn, format string, sink *plans) *postgres.Store {
	t.Helper()
	dsn = with(t, dsn, "pool_max_conns", "1", "session_preload_libraries", "auto_explain", "client_min_messages", "log",
		"auto_explain.log_min_duration", "0", "auto_explain.log_analyze", "on", "auto_explain.log_buffers", "on",
		"auto_explain.log_timing", "off", "auto_explain.log_format", format)
	s, err := postgres.OpenWith(t.Context(), dsn, slog.New(slog.DiscardHandler), func(c *pgxpool.Config) {
		before := c.ConnConfig.OnNotice
		c.ConnConfig.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
			before(conn, notice)
			if _, text, ok := strings.Cut(notice.Message, "plan:\n"); ok {
				sink.add(read(t, format, text))
			}
		}
	})
	must.Do(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func read(t *testing.T, format, text string) plan {
	if format == "text" {
		statement, steps, _ := strings.Cut(strings.TrimPrefix(text, "Query Text: "), "\n")
		for strings.Contains(steps, "\n") && !strings.Contains(strings.SplitN(steps, "\n", 2)[0], "(cost=") {
			line, rest, _ := strings.Cut(steps, "\n")
			statement, steps = statement+"\n"+line, rest
		}
		return plan{statement: statement, text: steps}
	}
	var found struct {
		Query string `json:"Query Text"`
		Plan  node
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Errorf("a plan cannot be parsed: %v\n%s", err, text)
	}
	p := plan{statement: found.Query, text: text}
	p.add(found.Plan)
	return p
}

// add adds a step and those below it. The pages of a step include those of the steps
// below, but not those of a data-modifying CTE.
func (p *plan) add(n node) {
	p.nodes = append(p.nodes, n)
	own := n.Hit + n.Read
	for _, below := range n.Plans {
		own -= below.Hit + below.Read
		p.add(below)
	}
	p.buffers += max(own, 0)
}

const seed = `
	INSERT INTO heads SELECT k, 'id-' || n, 1, 'user-' || n %% 50, n * 1000, 'user-' || n %% 50, n * 1000 + k, CASE k WHEN 3 THEN 8 ELSE 0 END, n * 1000 + k, 'ska_mid', %[2]d
		FROM generate_series(1, 4) k, generate_series(1, %[1]d) n;
	INSERT INTO creations SELECT kind, identifier, created_by, created_on, telescope FROM heads WHERE identifier LIKE 'id-%%';
	INSERT INTO catalogue SELECT kind, identifier, '\x%[3]x',
		array_to_tsvector(ARRAY[kind || 'wid', kind || 'w' || created_on / 1000, kind || 'rref-' || created_on / 100000]), created_on FROM heads WHERE identifier LIKE 'id-%%';
	INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal)
		SELECT kind, identifier, 1, created_by, created_on, 0, 0, CASE kind WHEN 3 THEN '{}'::bigint[] END, CASE kind WHEN 3 THEN '{6,21}'::int[] ELSE '{}' END,
			'{"request_responses":}', sha256('{"request_responses":}'), '' FROM heads WHERE identifier LIKE 'id-%%';
	INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal)
		SELECT 3, 'id-5000', n, 'user-1', 5000000 + n, 0, 0, '{}', '{6,21}', '{"request_responses":}', sha256('{"request_responses":}'), '' FROM generate_series(2, 2000) n;
	INSERT INTO changes SELECT c.*, archive_seal_of_change(number, width, names, places)
		FROM (SELECT nextval('numbers') AS number, 1 AS width, ARRAY[identifier, stored_by] AS names, ARRAY[kind, version, 1, 0, stored_on] AS places FROM versions) c;
	UPDATE heads SET version = 2000, last_modified_on = 5003000, listed_on = 5003000 WHERE kind = 3 AND identifier = 'id-5000';
	INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		SELECT 3, 'id-' || n, s, 1, 'user-1', n * 1000 + s, 'seed-' || s, sha256('{"request":"x"}'), '{"request":"x"}', '' FROM generate_series(0, %[1]d, %[4]d) n, generate_series(1, 8) s;
	INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		SELECT 3, id, s, 1, 'user-1', 6010000 + s, rpad('seed-' || s || '-', 40, 'x'), sha256('{"request":"x"}'), '{"request":"x"}', '' FROM unnest(ARRAY['id-6000', 'id-6010']) id, generate_series(9, 10000) s;
	UPDATE heads SET last_sequence = 10000, last_modified_on = 6020000, listed_on = 6020000 WHERE kind = 3 AND identifier IN ('id-6000', 'id-6010');
	INSERT INTO standings SELECT kind, identifier, created_on, 'Draft', 'draft', 1, 0, 0, 0 FROM creations WHERE created_on %% 50000 = 0;
	INSERT INTO standings SELECT kind, identifier, created_on, 'Observed', 'observed', 3, 0, 0, 0 FROM creations WHERE created_on %% 100000 = 1000 AND identifier <> 'id-7000';
	INSERT INTO standings VALUES (3, 'id-7000', 7000000, 'Observed', 'observed', 3, 2000, 2000, 2000) ON CONFLICT (kind, identifier) DO UPDATE SET sequence = 2000, at = 2000, last = 2000;
	INSERT INTO failed_calls SELECT 3, 'id-' || n %% 25 * 1000, n * 1000, n, NULL, NULL, 'r', 'f' || n %% 50, 'E' || n %% 40, 'x', 'd' || n %% 30, 'anna' FROM generate_series(1, %[1]d) n;
	INSERT INTO long_calls SELECT 3, 'id-' || n %% 25 * 1000, n * 1000, n, n * 1000 + 2000000 FROM generate_series(1, %[1]d) n;
	INSERT INTO creation_keys SELECT 3, 'created-' || n, 'id-' || n, sha256(''), '' FROM generate_series(1, %[1]d) n;`

// seedSize is how many entities of each kind are stored. Fewer are still so many that
// PostgreSQL reads a table only if it has no better plan.
func seedSize() int {
	if os.Getenv("ODA_PLANS") != "" {
		return 25_000
	}
	return proof.Rounds(10_000, 25_000)
}

// grow fills the tables directly, with rows like those of 100,000 entities, or of 40,000.
// One in so many blocks has its 8 records, and two have 10,000.
func grow(t *testing.T, dsn string, recorded int) {
	t.Helper()
	conn := connect(t, dsn)
	seeded := summary.OfDocument(suite.Document(t, oda.SBDefinition, `{}`))
	for _, table := range []string{"heads", "creations", "catalogue", "versions", "records", "creation_keys", "statuses", "standings", "failed_calls", "long_calls"} {
		do(t, conn, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)")
	}
	var sequences []int64
	var digests [][]byte
	for n := range int64(2000) {
		row := engine.StatusRow{Place: []byte("3\nid-7000"), Status: oda.Status{
			Ref: block("id-7000"), Sequence: n + 1, Text: "Observed", Class: oda.ClassDone, At: oda.Instant(n + 1), Version: 1, By: "anna", On: oda.Instant(n + 1), Current: true,
		}, Key: &oda.Key{Value: fmt.Sprint("seed-", n+1)}}
		digest := row.Digest()
		sequences, digests = append(sequences, n+1), append(digests, digest[:])
	}
	_, err := conn.Exec(t.Context(), `INSERT INTO statuses SELECT 3, 'id-7000', s, 1, 'Observed', 3, NULL, s, NULL, true, 'anna', s, 'seed-' || s, $3, digest
		FROM unnest($1::bigint[], $2::bytea[]) AS u (s, digest)`, sequences, digests, make([]byte, sha256.Size))
	must.Do(t, err)
	do(t, conn, "SET synchronous_commit = off", fmt.Sprintf(seed, seedSize(), seeded.Hash(), (&oda.Summary{Telescope: "ska_mid"}).Pack(), recorded))
}

// runHot runs each operation and checks the plans of its statements.
func runHot(t *testing.T, s *postgres.Store, sink *plans, try int, must bool) map[string][]plan {
	t.Helper()
	all := map[string][]plan{}
	for _, h := range hotOperations() {
		sink.take(h)
		if err := h.run(t, s, try); err != nil && must {
			t.Fatalf("%s: %v", h.name, err)
		}
		all[h.name] = sink.take(h)
	}
	return all
}

func demandIndexes(t *testing.T, all map[string][]plan, factor int) {
	t.Helper()
	for _, h := range hotOperations() {
		if len(all[h.name]) == 0 {
			t.Errorf("%s: no plan was seen", h.name)
		}
		for _, p := range all[h.name] {
			for _, n := range p.nodes {
				bitmap := strings.HasPrefix(n.Type, "Bitmap") && !h.isSearch()
				if n.Type == "Seq Scan" && n.Table != "log_end" || bitmap { // which has one row
					t.Errorf("%s: %s of %s in %.60s", h.name, n.Type, n.Table, p.statement)
				}
				if strings.Contains(n.Type, "Sort") && !h.isSearch() {
					t.Errorf("%s: PostgreSQL sorts in %.60s", h.name, p.statement)
				}
			}
			if p.buffers > h.buffers*factor {
				t.Errorf("%s: %d pages are touched, more than %d, by %s\n%s", h.name, p.buffers, h.buffers*factor, p.statement, p.text)
			}
			if testing.Verbose() {
				t.Logf("%-28s %5d pages  %.50q", h.name, p.buffers, p.statement)
			}
		}
	}
}

// cheapest returns the plans of each operation from the run in which they touched the fewest
// pages. Whenever PostgreSQL tidies up a table, it reads again what it knew of it.
func cheapest(runs ...map[string][]plan) map[string][]plan {
	most := func(plans []plan) (n int) {
		for _, p := range plans {
			n = max(n, p.buffers)
		}
		return n
	}
	least := runs[0]
	for _, run := range runs[1:] {
		for name, plans := range run {
			if most(plans) < most(least[name]) {
				least[name] = plans
			}
		}
	}
	return least
}

// vacuum marks the pages of a table, but perhaps the last, as visible to everybody.
// It tries again while an open transaction hinders it.
func vacuum(t *testing.T, dsn, table string) {
	t.Helper()
	conn := connect(t, dsn)
	for range 100 {
		do(t, conn, "VACUUM (ANALYZE, INDEX_CLEANUP ON) "+table)
		if env.Query[bool](t, conn, "SELECT relallvisible >= relpages - 1 FROM pg_class WHERE oid = $1::text::regclass", table) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("VACUUM could not mark all pages of %s as visible", table)
}

func TestHotStatementsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	open(t, dsn)
	grow(t, dsn, 1)
	for _, table := range []string{"heads", "creations", "catalogue", "versions", "records", "call_days", "creation_keys", "statuses", "standings", "failed_calls", "long_calls", "counts", "changes", "rounds"} {
		vacuum(t, dsn, table)
	}
	var plans plans
	s := planned(t, dsn, "json", &plans)
	runHot(t, s, &plans, 0, true) // the pages of the catalogue are not counted
	demandIndexes(t, cheapest(runHot(t, s, &plans, 1, true), runHot(t, s, &plans, 2, true), runHot(t, s, &plans, 3, true)), 1)
	if path := os.Getenv("ODA_PLANS"); path != "" {
		writePlans(t, dsn, path)
	}
}

// PostgreSQL keeps the plan that it made while the tables were empty. After a restore
// it plans again, but knows nothing of the tables until it has analyzed them.
func TestHotStatementsUseTheirIndexesAfterTheTablesHaveGrown(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	var plans plans
	s := planned(t, dsn, "json", &plans)
	for _, ref := range []oda.Ref{sbd("id-2000"), block("id-1000"), block("id-6000")} {
		mustPut(t, s, write(t, ref, `{}`))
	}
	mustRecord(t, s, "id-1000", "x")
	runHot(t, s, &plans, 0, false)
	do(t, connect(t, dsn), "TRUNCATE heads, creations, catalogue, versions, records, call_days, creation_keys, statuses, standings, failed_calls, long_calls, changes, rounds")
	runHot(t, s, &plans, 1, false) // and again in tables that have never been full
	grow(t, dsn, 50)               // so few that each filter seems to leave one row
	demandIndexes(t, runHot(t, s, &plans, 2, true), 3)
	demandIndexes(t, runHot(t, planned(t, dsn, "json", &plans), &plans, 3, true), 3)
	if got := suite.Render(t, mustGet(t, s, block("id-3000"))); strings.Count(got, `{"request":"x"}`) != 8 {
		t.Errorf("the rows in the tables are not a valid archive: %s", got)
	}
}

// Blocks come late in an archive that began with definitions, and PostgreSQL analyzes
// a table again only after a tenth of it has changed. Until then it takes them for rare.
func TestHotStatementsUseTheirIndexesWhileBlocksSeemRare(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	open(t, dsn)
	do(t, connect(t, dsn),
		"INSERT INTO heads SELECT 1, 'old-' || n, 1, 'user-' || n % 50, n, 'anna', n, 0, n, 'ska_mid', 0 FROM generate_series(1, 5000) n",
		"ANALYZE heads", "DELETE FROM heads") // they have no versions; the statistics stay
	grow(t, dsn, 50)
	var plans plans
	s := planned(t, dsn, "json", &plans)
	runHot(t, s, &plans, 0, true)
	demandIndexes(t, runHot(t, s, &plans, 1, true), 3)
}

// PostgreSQL may have analyzed the heads when there were only a few.
func TestUpdatesInOneStatementReadNoOtherHeads(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	open(t, dsn)
	do(t, connect(t, dsn),
		"INSERT INTO heads SELECT k, 'old-' || n, 1, 'anna', n, 'anna', n, 0, n, 'ska_mid', 0 FROM generate_series(1, 4) k, generate_series(1, 5) n",
		"ANALYZE heads", "DELETE FROM heads")
	var plans plans
	s := planned(t, dsn, "json", &plans)
	runHot(t, s, &plans, 0, false)
	grow(t, dsn, 50)
	for _, p := range runHot(t, s, &plans, 1, true)["Update 32"] {
		for _, n := range p.nodes {
			if n.Rows > 32 {
				t.Errorf("%s of %s reads %.0f rows in %.60s", n.Type, n.Table, n.Rows, p.statement)
			}
		}
	}
}

// writePlans writes a page with the plans, for people.
func writePlans(t *testing.T, dsn, path string) {
	t.Helper()
	var plans plans
	s := planned(t, dsn, "text", &plans)
	runHot(t, s, &plans, 3, true)
	all := runHot(t, s, &plans, 4, true)
	var page strings.Builder
	page.WriteString(`# How PostgreSQL runs the hot statements

Each statement is shown as PostgreSQL ran it: sent by the archive, with the settings of its sessions, in a database of
100,000 entities and 220,000 records. *Buffers* are pages of 8 KiB. A test holds every statement to its indexes and to
a number of pages, here and with plans that were made while the tables were empty.
`)
	for _, h := range hotOperations() {
		if h.isSearch() {
			continue // there are many, and they are much alike
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s At most %d pages.\n", h.name, h.purpose, h.buffers)
		for _, p := range slices.CompactFunc(all[h.name], func(a, b plan) bool { return a.statement == b.statement }) {
			fmt.Fprintf(&page, "\n```sql\n%s\n```\n\n```text\n%s\n```\n", strings.TrimSpace(undent(p.statement)), strings.TrimRight(p.text, "\n"))
		}
	}
	must.Do(t, os.WriteFile(path, []byte(page.String()), 0o644))
}

// undent removes the indentation of the Go source.
func undent(statement string) string { return strings.ReplaceAll(statement, "\n\t", "\n") }
