package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
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
