package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Every write takes a number from a sequence while it holds the heads that it
// changes. Numbers are not positions: a transaction with a lower number may commit
// after one with a higher number, when followers have already read the latter. So
// positions are assigned later, in rounds. A round is one row. It lists the numbers
// that a snapshot shows and that are in no earlier round; they get their positions
// in the order of numbers.
//
// That order can be trusted. A second change of an entity takes its number after
// the first has committed. So does a change that is sent after another was
// acknowledged. In both cases its number is higher, and a snapshot that shows the
// second change also shows the first.
//
// Numbers that a snapshot lacks are gaps. They appear in a later round, or never if
// their transactions were rolled back. A transaction takes its number after it has
// changed a head, so it is older than the transaction that notes the gap (since).
// Once all transactions that are older than that one have ended, what is still
// missing will never appear. So a long transaction elsewhere in the cluster delays
// nothing; it only keeps gaps in the list.
//
// Any process can make rounds. If two try at once, they collide at the key of the
// table: one makes the round, and the other looks again. There is no lock, and no
// process that must stay alive.

// Bounds of numbering.
const (
	roundNumbers = 1000                   // new numbers in a round at most
	mostGaps     = 5000                   // if there are more, later numbers wait
	roundPause   = time.Second            // between rounds that nobody asks for
	pollPause    = 40 * time.Millisecond  // the same, while anyone waits for changes; those who wait are woken as often
	busyPause    = 80 * time.Millisecond  // the same, while this process writes, and there are many changes
	manyChanges  = 250                    // between two wake-ups
	retryPause   = 250 * time.Millisecond // after an error, doubled each time
	longestRetry = time.Second
)

const (
	// selectRound reads in one snapshot how far the rounds have come, and what there
	// is to number: new numbers, at most $1 of them, and those that have
	// appeared in gaps. It also says how far the sequence has come.
	selectRound = `SELECT ` + numbersTaken + `, coalesce(l.last, 0), coalesce(l.seen, 0), coalesce(l.gaps, '{}'), coalesce(l.since, '{}'),
			pg_snapshot_xmin(s.shot)::text::bigint, pg_snapshot_xmax(s.shot)::text::bigint,
			current_setting('synchronous_standby_names') <> '', coalesce(f.numbers, '{}'), coalesce(f.widths, '{}')
		FROM (SELECT pg_current_snapshot() AS shot) s
		LEFT JOIN LATERAL (SELECT * FROM rounds ORDER BY after DESC LIMIT 1) l ON true
		CROSS JOIN LATERAL (SELECT array_agg(number) AS numbers, array_agg(width) AS widths FROM (
			(SELECT number, width FROM changes WHERE number > coalesce(l.seen, 0) ORDER BY number LIMIT $1)
			UNION ALL
			SELECT c.number, c.width FROM generate_series(1, cardinality(l.gaps), 2) AS i CROSS JOIN LATERAL (
				SELECT number, width FROM changes WHERE number BETWEEN l.gaps[i] AND l.gaps[i + 1] OFFSET 0) c) n) f`

	// insertRound makes a round, unless another process was faster. The last $7 gaps
	// are new, and noted with the statement's own transaction.
	insertRound = `WITH made AS (INSERT INTO rounds (after, last, seen, runs, gaps, since, seal)
			VALUES ($1, $2, $3, $4, $5::bigint[], CASE WHEN $5::bigint[] IS NOT NULL THEN $6::bigint[] || array_fill(pg_current_xact_id()::text::bigint, ARRAY[$7::integer]) END,
				archive_seal_of_round($1, $2, $3, $4))
			ON CONFLICT DO NOTHING RETURNING last),
		ended AS (UPDATE log_end SET position = made.last FROM made)
		SELECT FROM made`
)

// numbered is a number, and how many positions it takes.
type numbered struct{ number, width int64 }

// gap is a range of missing numbers. Since is the transaction that noted it; 0 stands
// for the one that makes the round.
type gap struct{ first, last, since int64 }

// ending is how far the rounds have come.
type ending struct {
	last oda.Position
	seen int64 // the highest number
	gaps []gap // below that, in order
}

// round is what a round adds. Its ending is how far it comes.
type round struct {
	ending
	runs []int64 // of numbers: first, last, ...
	full bool    // no more gaps may be noted
}

// next returns the next round, nil if there is nothing to number. Found has what a
// snapshot shows: the numbers after the highest one so far and those in gaps, in
// order. Transactions before xmin have ended, and none from xmax on has begun.
func (e ending) next(found []numbered, xmin, xmax int64) *round {
	r := &round{ending: ending{last: e.last, seen: e.seen}}
	for _, g := range e.gaps {
		// A gap from the future was noted in another cluster, from which this database
		// was restored. No transaction of that cluster can fill it any more.
		over := g.since <= xmin || g.since >= xmax
		for len(found) > 0 && found[0].number <= g.last {
			if one := found[0]; one.number > g.first && !over {
				r.gaps = append(r.gaps, gap{g.first, one.number - 1, g.since})
			}
			g.first = found[0].number + 1
			r.take(found[0])
			found = found[1:]
		}
		if g.first <= g.last && !over {
			r.gaps = append(r.gaps, g)
		}
	}
	for _, one := range found {
		if one.number > r.seen+1 {
			if r.full = len(r.gaps) >= mostGaps; r.full {
				break
			}
			r.gaps = append(r.gaps, gap{r.seen + 1, one.number - 1, 0})
		}
		r.take(one)
		r.seen = one.number
	}
	if r.runs == nil && !r.full {
		return nil
	}
	return r
}

// take assigns the next positions to a number.
func (r *round) take(one numbered) {
	r.last += oda.Position(one.width)
	switch n := len(r.runs); {
	case n > 0 && r.runs[n-1] == one.number-1:
		r.runs[n-1] = one.number
	default:
		r.runs = append(r.runs, one.number, one.number)
	}
}

// numbering makes rounds while the engine is open.
type numbering struct {
	store *Store
	tail  engine.Tail   // how far followers may read
	wake  chan struct{} // tells run to look again; has room for one

	written atomic.Bool // there was a write since the last round, or since those who wait were woken

	mu     sync.Mutex // guards what follows
	asked  []chan<- error
	closed bool
}

func newNumbering(s *Store) *numbering { return &numbering{store: s, wake: make(chan struct{}, 1)} }

// poke makes run look again.
func (n *numbering) poke() {
	select {
	case n.wake <- struct{}{}:
	default: // it is already told
	}
}

// wrote notes a write. It costs almost nothing.
func (n *numbering) wrote() {
	if n.written.Load() {
		return
	}
	n.written.Store(true)
	if n.tail.Awaited() {
		n.poke()
	}
}

// await waits until there may be changes after a position.
func (n *numbering) await(ctx context.Context, after oda.Position) error {
	end := n.tail.Wait()
	defer end()
	n.poke() // run may be in a long pause, and now sees that somebody waits
	return n.tail.Await(ctx, after)
}

// catchUp waits until everything is numbered that was committed before the call.
func (n *numbering) catchUp(ctx context.Context) error {
	done := make(chan error, 1)
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return errStopping
	}
	n.asked = append(n.asked, done)
	n.mu.Unlock()
	n.poke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errStopping = oda.Errorf(oda.Unavailable, "The archive is stopping. Try again shortly.")

// close ends all waiting, and then run.
func (n *numbering) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.tail.Close()
	n.poke()
}

// take returns the calls of catchUp that wait, and whether numbering is closed.
func (n *numbering) take() (asked []chan<- error, end bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked, n.asked = n.asked, nil
	return asked, n.closed
}

func answerAll(asked []chan<- error, err error) {
	for _, done := range asked {
		done <- err
	}
}

// run makes rounds until close is called: at once if catchUp asks, often while
// anyone waits for changes, and seldom otherwise.
func (n *numbering) run(ctx context.Context) {
	var (
		began, called time.Time
		calledAt      oda.Position  // when those who wait were last woken
		pace          = pollPause   // until they are woken again
		failing       time.Duration // the pause after errors; 0 if there was none
		full          bool
	)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		awaited := n.tail.Awaited()
		if awaited && n.written.Load() && time.Since(called) >= pace {
			// Those who wait will read, and so ask for a round. That costs the writers
			// time, so it is less often while there is much to read.
			if pace = pollPause; n.tail.End()-calledAt >= manyChanges {
				pace = busyPause
			}
			called, calledAt = time.Now(), n.tail.End()
			n.written.Store(false)
			n.tail.Call()
		}
		pause := roundPause
		switch {
		case failing > 0 && n.written.Load():
			pause = retryPause // a write succeeded, so a round may too
		case failing > 0:
			pause = failing
		case awaited && n.written.Load():
			pause = pace
		case awaited:
			pause = pollPause
		}
		asked, end := n.take()
		if end {
			answerAll(asked, errStopping)
			return
		}
		if left := pause - time.Since(began); len(asked) == 0 && left > 0 {
			if awaited && n.written.Load() {
				left = min(left, pace-time.Since(called))
			}
			timer.Reset(max(left, 0))
			select {
			case <-n.wake:
			case <-timer.C:
			}
			continue
		}
		began = time.Now()
		n.written.Store(false)
		wasFull := full
		var err error
		full, err = n.rounds(ctx)
		answerAll(asked, err)
		switch {
		case err != nil && failing == 0:
			failing = retryPause
			n.store.log.Warn("the log of changes cannot be continued; trying again", "error", err)
		case err != nil:
			failing = min(2*failing, longestRetry)
		case failing > 0:
			failing = 0
			n.store.log.Info("the log of changes is continued")
		case full && !wasFull:
			n.store.log.Warn("the log of changes waits for the oldest transaction of the database cluster to end; "+
				"find it in pg_stat_activity or pg_prepared_xacts and end it", "gaps", mostGaps)
		}
	}
}

// rounds makes rounds until nothing is left to number. It reports whether it had to
// stop because there are too many gaps.
func (n *numbering) rounds(ctx context.Context) (full bool, err error) {
	for more := true; more && err == nil; {
		more, full, err = n.round(ctx)
	}
	return full, err
}

// round makes a round, if there is anything to number.
func (n *numbering) round(ctx context.Context) (more, full bool, err error) {
	s := n.store
	var (
		at, taken      int64
		e              ending
		xmin, xmax     int64
		synchronous    bool
		gaps, since    []int64
		numbers, wides []int64
	)
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, selectRound, roundNumbers).Scan(&at, &taken, &e.last, &e.seen, &gaps, &since, &xmin, &xmax, &synchronous, &numbers, &wides)
	})
	if err != nil {
		return false, false, err
	}
	s.compareNumbers(at, taken)
	if len(gaps) != 2*len(since) || len(numbers) != len(wides) {
		return false, false, errRound
	}
	for i := range since {
		e.gaps = append(e.gaps, gap{gaps[2*i], gaps[2*i+1], since[i]})
	}
	found := make([]numbered, len(numbers))
	for i := range numbers {
		found[i] = numbered{numbers[i], wides[i]}
	}
	found, more = cut(found, e.seen)
	r := e.next(found, xmin, xmax)
	switch {
	case r != nil && r.runs != nil:
		made, err := n.insert(ctx, e.last, r)
		if err != nil {
			return false, false, err
		}
		if !made {
			return true, false, nil // another process was faster
		}
		e.last = r.last
	case e.last == n.tail.End():
	case synchronous:
		// Others made these rounds. They may be visible although no standby has them,
		// because the wait for the standby was cancelled or the server crashed. The
		// next failover would lose them, so followers must not read them yet.
		if err := s.confirm(ctx); err != nil {
			return false, false, err
		}
	}
	n.tail.Move(e.last)
	return more && (r == nil || !r.full), r != nil && r.full, nil
}

var errRound = errors.New("the last row of the table rounds is damaged; restore the archive from a backup")

// cut sorts what was found and keeps as much as fits into a round.
func cut(found []numbered, seen int64) (fit []numbered, more bool) {
	slices.SortFunc(found, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	old, _ := slices.BinarySearchFunc(found, seen+1, func(one numbered, number int64) int { return cmp.Compare(one.number, number) })
	most := old + roundNumbers
	if len(found) < most {
		return found, false
	}
	return found[:most], true
}

// insert makes a round. It reports whether it did, or another process was faster.
func (n *numbering) insert(ctx context.Context, after oda.Position, r *round) (made bool, err error) {
	var gaps []int64 // nil: none
	since, fresh := make([]int64, 0, len(r.gaps)), 0
	for _, g := range r.gaps {
		gaps = append(gaps, g.first, g.last)
		if g.since == 0 {
			fresh++
		} else {
			since = append(since, g.since)
		}
	}
	var tag pgconn.CommandTag
	err = n.store.writeUnnumbered(ctx, answerTime, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		tag, err = conn.Exec(ctx, insertRound, int64(after), int64(r.last), r.seen, r.runs, gaps, since, fresh)
		return err
	})
	return tag.RowsAffected() > 0, err
}
