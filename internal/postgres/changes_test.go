package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// follow reads the log from a position to its end.
func follow(tb testing.TB, s *postgres.Store, after oda.Position, limit int) (all []oda.Change) {
	tb.Helper()
	for {
		changes, next, err := s.Changes(tb.Context(), after, limit)
		if err != nil {
			tb.Fatalf("changes after %d: %v", after, err)
		}
		if next == after {
			return all
		}
		all, after = append(all, changes...), next
	}
}

// tell describes changes in a few words: identifier, version, and sequence numbers.
func tell(changes []oda.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s %d %d-%d", c.ID, c.Version, c.FirstSequence, c.LastSequence))
	}
	return strings.Join(all, ", ")
}

// A change that is missing in the middle of a round is not passed over.
func TestALostChangeIsNotSkipped(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("a"), `{}`))
	for range 3 {
		mustRecord(t, s, "a", "x")
	}
	end := must.Get(s.End(t.Context()))(t)
	do(t, conn, "BEGIN", "DELETE FROM rounds",
		fmt.Sprintf("INSERT INTO rounds (after, last, seen, runs, seal) SELECT 0, %d, max(number), ARRAY[1, max(number)], '' FROM changes", end),
		"DELETE FROM changes WHERE number = (SELECT number FROM changes ORDER BY number OFFSET 1 LIMIT 1)", "COMMIT")
	changes, _, err := s.Changes(t.Context(), 0, 100)
	wantCode(t, err, oda.DamagedText)
	if len(changes) > 0 {
		t.Errorf("served with a change missing: %s", tell(changes))
	}
}

// While a transaction waits for a head, others overtake it, and its number is higher
// than theirs.
func TestANumberIsTakenOnceAllHeadsAreLocked(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, holder, watch := open(t, dsn), connect(t, dsn), connect(t, dsn)
	for _, id := range []string{"a", "b", "c", "d"} {
		mustPut(t, s, write(t, block(id), `{}`))
	}
	end := must.Get(s.End(t.Context()))(t)
	const taken = "SELECT last_value FROM numbers"
	before := query[int64](t, watch, taken)
	do(t, holder, "BEGIN", "SELECT FROM heads WHERE kind = 3 AND identifier = 'b' FOR UPDATE")
	done := make(chan []error, 1)
	go func() {
		_, errs := s.AppendTogether(t.Context(), []oda.Append{adding("a", "x", ""), adding("b", "x", ""), adding("c", "x", "")})
		done <- errs
	}()
	await(t, "the records wait for the head", patience, func() bool { return waiting(t, watch) == 1 })
	if now := query[int64](t, watch, taken); now != before {
		t.Errorf("a transaction that waits for a head has taken the number %d", now)
	}
	mustRecord(t, s, "d", "y")
	if got := tell(follow(t, s, end, 100)); got != "d 1 1-1" {
		t.Errorf("the changes of the others are missing: %s", got)
	}
	do(t, holder, "COMMIT")
	must.Do(t, errors.Join(<-done...))
	if got := tell(follow(t, s, end, 100)); got != "d 1 1-1, a 1 1-1, b 1 1-1, c 1 1-1" && got != "d 1 1-1, a 1 1-1, c 1 1-1, b 1 1-1" {
		t.Errorf("the changes are %s", got)
	}
}

// Records of several users and blocks in one transaction are changes in the order
// of their blocks.
func TestRecordsOfSeveralUsersInOneTransactionAreSeveralChanges(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	for _, id := range []string{"a", "b"} {
		mustPut(t, s, write(t, block(id), `{}`))
	}
	var adds []oda.Append
	for i, by := range []string{"anna", "anna", "bert", "anna"} {
		for _, id := range []string{"a", "b"} {
			add := adding(id, fmt.Sprint(i), "")
			add.By = by
			adds = append(adds, add)
		}
	}
	if _, errs := s.AppendTogether(t.Context(), adds); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	wantSenders(t, s)
	// The statement for records of one known day says the same.
	if _, errs := s.AppendTogether(t.Context(), adds); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	wantSenders(t, s)
	wantWhole(t, dsn)
}

// wantSenders checks that the changes name the senders of the records of each block
// in order.
func wantSenders(t *testing.T, s *postgres.Store) {
	t.Helper()
	senders, sequence := map[string][]string{}, map[string]int64{}
	for _, c := range follow(t, s, 2, 3) {
		if c.FirstSequence != sequence[c.ID]+1 {
			t.Errorf("%s continues at %d, after %d", c.ID, c.FirstSequence, sequence[c.ID])
		}
		sequence[c.ID] = c.LastSequence
		for range c.LastSequence - c.FirstSequence + 1 {
			senders[c.ID] = append(senders[c.ID], c.By)
		}
	}
	for _, id := range []string{"a", "b"} {
		once := []string{"anna", "anna", "bert", "anna"}
		if want := slices.Repeat(once, len(senders[id])/4); len(senders[id])%4 != 0 || len(want) == 0 || !slices.Equal(senders[id], want) {
			t.Errorf("the records of %s were sent by %v", id, senders[id])
		}
	}
}

// A long transaction delays nothing. What it writes appears once it has committed,
// and what was rolled back leaves no trace.
func TestALongTransactionDelaysNoChange(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, old, slow, undone := open(t, dsn), connect(t, dsn), connect(t, dsn), connect(t, dsn)
	mustPut(t, s, write(t, block("slow"), `{}`))
	do(t, old, "BEGIN", "SELECT pg_current_xact_id()")
	record := []string{
		"BEGIN", "UPDATE heads SET last_sequence = 1 WHERE kind = 3 AND identifier = 'slow'",
		"INSERT INTO changes SELECT c.*, archive_seal_of_change(number, width, names, places) FROM (" +
			"SELECT nextval('numbers') AS number, 1 AS width, ARRAY['slow', 'anna'] AS names, ARRAY[0, 1, 1, 1, 1::bigint] AS places) c",
	}
	do(t, undone, append(record, "ROLLBACK")...)
	do(t, slow, record...)
	for i := range 3 {
		mustPut(t, s, write(t, sbd(fmt.Sprint(i)), `{}`))
		if got := follow(t, s, 0, 100); len(got) != i+2 || got[i+1].ID != fmt.Sprint(i) {
			t.Fatalf("the changes are %s", tell(got))
		}
	}
	do(t, slow, "COMMIT")
	if got := tell(follow(t, s, 0, 100)); got != "slow 1 0-0, 0 1 0-0, 1 1 0-0, 2 1 0-0, slow 1 1-1" {
		t.Errorf("the changes are %s", got)
	}
	const gaps = "SELECT coalesce(cardinality(gaps), 0) / 2 FROM rounds ORDER BY after DESC LIMIT 1"
	if n := query[int](t, old, gaps); n != 1 {
		t.Errorf("%d gaps are kept while a transaction is open that may have been older", n)
	}
	do(t, old, "COMMIT")
	i := 0
	await(t, "no gap is left", patience, func() bool { // transactions of other tests are of the same cluster
		i++
		mustPut(t, s, write(t, sbd(fmt.Sprint("last-", i)), `{}`))
		follow(t, s, 0, 100)
		return query[int](t, old, gaps) == 0
	})
}

// Several processes write and number at once. All followers see the same, whichever
// process they follow and from whatever position.
func TestFollowersOfAllProcessesSeeTheSame(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	stores := []*postgres.Store{open(t, dsn), open(t, with(t, dsn, "pool_max_conns", "1"))}
	const writers, writes = 6, 15
	followers := []func() []oda.Change{startFollowing(t, stores[0]), startFollowing(t, stores[1])}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			s, ref := stores[w%len(stores)], block(fmt.Sprint("eb-", w))
			e := mustPut(t, s, write(t, ref, `{}`))
			for i := range writes {
				if i%5 != 4 {
					mustRecord(t, s, ref.ID, fmt.Sprint(i))
					continue
				}
				put := next(t, ref, e.Metadata)
				put.KeepRecords, put.Compare = true, oda.KeptFields
				e = mustPut(t, s, put)
			}
		})
	}
	writing.Wait()
	log := follow(t, stores[1], 0, 10_000)
	if end := log[len(log)-1].Position; end != writers*(1+writes) {
		t.Errorf("the log ends at %d", end)
	}
	for i, stop := range followers {
		if seen := tell(joined(stop())); seen != tell(log) {
			t.Errorf("follower %d has seen\n%s\nbut the log has\n%s", i, seen, tell(log))
		}
	}
	wantWhole(t, dsn)
}

// startFollowing follows the log from the beginning, whatever happens to the
// database. Stopping returns all changes up to the end.
func startFollowing(t *testing.T, s *postgres.Store) (stop func() []oda.Change) {
	ctx, cancel := context.WithCancel(t.Context())
	var seen []oda.Change
	var after oda.Position
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			changes, next, err := s.Changes(ctx, after, 7)
			switch {
			case err != nil:
				time.Sleep(10 * time.Millisecond) // the database is away
			case next == after:
				_ = s.Await(ctx, after)
			default:
				seen, after = append(seen, changes...), next
			}
		}
	})
	return func() []oda.Change {
		cancel()
		following.Wait()
		return append(seen, follow(t, s, after, 7)...)
	}
}

// joined joins changes as a page does.
func joined(changes []oda.Change) (all []oda.Change) {
	for _, c := range changes {
		if n := len(all); n == 0 || !all[n-1].Join(c) {
			all = append(all, c)
		}
	}
	return all
}

// counting counts the statements of an archive.
type counting struct{ statements atomic.Int64 }

func (c *counting) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

func (c *counting) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Nobody writes and nobody follows. One statement looks for changes, the other for a
// newer schema.
func TestAnIdleArchiveRunsTwoStatementsASecond(t *testing.T) {
	t.Parallel()
	var c counting
	s, err := postgres.OpenWith(t.Context(), env.Postgres(t), slog.New(slog.DiscardHandler), func(config *pgxpool.Config) { config.ConnConfig.Tracer = &c })
	must.Do(t, err)
	defer s.Close()
	must.Get(s.End(t.Context()))(t)
	begin, before := time.Now(), c.statements.Load()
	await(t, "some statements", patience, func() bool { return c.statements.Load() >= before+8 })
	if took := time.Since(begin); took < 2500*time.Millisecond {
		t.Errorf("it runs eight statements in %v", took)
	}
}

// The next failover may lose a round whose commit no standby has confirmed. Nobody
// may read it.
func TestARoundThatNoStandbyConfirmedIsNotRead(t *testing.T) {
	t.Parallel()
	dsn := env.NewCluster(t, env.ClusterOptions{}).DSN("postgres")
	s, conn, other := open(t, dsn), connect(t, dsn), connect(t, with(t, dsn, "application_name", "oda"))
	mustPut(t, s, write(t, sbd("a"), `{}`))
	if got := tell(follow(t, s, 0, 10)); got != "a 1 0-0" {
		t.Fatalf("the changes are %s", got)
	}
	waitForNobody(t, conn, connect(t, dsn))
	// Another process stores and numbers something, and its waits are cancelled.
	done := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), `WITH stored AS (INSERT INTO changes SELECT c.*, archive_seal_of_change(number, width, names, places)
				FROM (SELECT nextval('numbers') AS number, 1 AS width, ARRAY['b', 'anna'] AS names, ARRAY[1, 1, 1, 0, 1::bigint] AS places) c RETURNING number)
			INSERT INTO rounds (after, last, seen, runs, seal) SELECT 1, 2, number, ARRAY[number, number], '' FROM stored`)
		done <- err
	}()
	must.Do(t, endWait(t, conn, done))
	if n := query[int](t, conn, "SELECT count(*) FROM rounds"); n != 2 {
		t.Fatalf("there are %d rounds", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if changes, _, err := s.Changes(ctx, 1, 10); err == nil {
		t.Errorf("the round is read although no standby has it: %s", tell(changes))
	}
	do(t, conn, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	await(t, "it is read when it is safe", patience, func() bool {
		changes, _, err := s.Changes(t.Context(), 1, 10)
		return err == nil && tell(changes) == "b 1 0-0"
	})
}

// While the database is away, neither those who wait nor the log hear of every try.
func TestNumberingContinuesWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	c := env.NewCluster(t, env.ClusterOptions{})
	var log env.Journal
	s := must.Get(postgres.Open(t.Context(), c.DSN("postgres"), log.Logger()))(t)
	defer s.Close()
	mustPut(t, s, write(t, sbd("a"), `{}`))
	end := must.Get(s.End(t.Context()))(t)
	waited := make(chan error, 1)
	go func() { waited <- s.Await(t.Context(), end) }()
	c.Kill()
	for range 3 {
		if _, err := s.End(t.Context()); err == nil {
			t.Fatal("a log without a database has an end")
		}
	}
	c.Start()
	await(t, "a write", patience, func() bool {
		_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("b"), `{}`)})
		return err == nil
	})
	must.Do(t, <-waited)
	if got := tell(follow(t, s, end, 10)); got != "b 1 0-0" {
		t.Errorf("the changes are %s", got)
	}
	for _, line := range []string{"the log of changes cannot be continued", "the log of changes is continued"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("the log has %d lines with %q:\n%s", n, line, log.String())
		}
	}
}

// A client would try again for ever if it were told that the database is unavailable.
func TestADamagedRowOfTheLogIsCalledDamaged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage string
		before oda.Position // the last one before the damage
	}{
		"its names":  {"UPDATE changes SET names = ARRAY['a'] WHERE number > 1", 1},
		"its places": {"UPDATE changes SET places = '{1}'", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, conn, _ := fresh(t)
			mustPut(t, s, write(t, block("a"), `{}`))
			mustRecord(t, s, "a", "x")
			must.Get(s.End(t.Context()))(t)
			do(t, conn, test.damage)
			_, _, err := s.Changes(t.Context(), test.before, 100)
			wantCode(t, err, oda.DamagedText)
			err = s.Entries(t.Context(), 2, func(oda.Ref) bool { return true }, func(*oda.LogEntry) error { return nil })
			wantCode(t, err, oda.DamagedText)
		})
	}
}

// A process that waits looks for what others write all the time, however often it begins
// to wait again.
func TestAChangeOfAnotherProcessIsSeenSoon(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	writer, follower := open(t, dsn), open(t, dsn)
	mustPut(t, writer, write(t, block("a"), `{}`))
	var late []time.Duration
	for range 40 {
		end := must.Get(follower.End(t.Context()))(t)
		acknowledged := make(chan time.Time, 1)
		go func() {
			time.Sleep(10 * time.Millisecond)
			mustRecord(t, writer, "a", "x")
			acknowledged <- time.Now()
		}()
		must.Do(t, follower.Await(t.Context(), end))
		if took := time.Since(<-acknowledged); took > env.AtMost(400*time.Millisecond) {
			late = append(late, took)
		}
	}
	if len(late) > 1 { // one may be the machine's fault
		t.Errorf("%d of 40 changes were seen late: %v", len(late), late)
	}
}

// The database is restored to an older state while the archive runs. A stream that has seen
// what is gone ends, and new followers get what is in the log now, not what was there before.
func TestFollowersOfARestoredDatabaseSeeItsLog(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	p := env.Oda(t, "serve", "--db", dsn)
	for _, id := range []string{"a", "b", "c"} {
		if status, text := send(t, "PUT", p.URL+"/sbds/"+id, `{}`); status != 200 {
			t.Fatal(status, text)
		}
	}
	conn := connect(t, dsn)
	seen, ended := make(chan bool, 1), make(chan string, 1)
	go func() {
		ended <- stream(t, p.URL+"/changes?after=0", func(text string) bool {
			if strings.Contains(text, `"id":"c"`) {
				seen <- true
			}
			return false
		})
	}()
	select {
	case <-seen:
	case text := <-ended:
		t.Fatalf("before, the stream had %s", text)
	}
	do(t, conn, "BEGIN", "DELETE FROM heads WHERE identifier > 'a'", "DELETE FROM versions WHERE identifier > 'a'", "DELETE FROM rounds",
		"DELETE FROM changes WHERE names[1] > 'a'",
		"INSERT INTO rounds (after, last, seen, runs, seal) SELECT 0, 1, number, ARRAY[number, number], '' FROM changes", "COMMIT")
	<-ended
	if status, text := send(t, "PUT", p.URL+"/sbds/d", `{}`); status != 200 {
		t.Fatal(status, text)
	}
	has := func(text string) bool { return strings.Contains(text, `"id":"d"`) }
	if text := stream(t, p.URL+"/changes?after=1", has); strings.Contains(text, `"id":"b"`) || !has(text) {
		t.Errorf("after it, a stream has %s", text)
	}
	if status, text := send(t, "GET", p.URL+"/changes?after=3&wait=1", ""); status != 400 || !strings.Contains(text, "unknown-position") {
		t.Errorf("who has seen what is gone is answered %d %s", status, text)
	}
}

// stream returns what a stream has until it ends or has enough, which it is asked for each
// of its lines. It fails the test if it takes too long.
func stream(t *testing.T, address string, enough func(text string) bool) (text string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		text += lines.Text() + "\n"
		if enough(lines.Text()) {
			return text
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the stream goes on after\n%s", text)
	}
	return text
}
