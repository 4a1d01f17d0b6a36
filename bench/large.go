package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Details of arms.
const (
	byCreation     = ", list by creation"
	byModification = ", list by last modification"
	onSmall        = ", small archive"
)

// Figures of filling an archive.
const (
	firstTenth figure = "first tenth per second"
	lastTenth  figure = "last tenth per second"
	written    figure = "written to disk"
	logged     figure = "of that, write-ahead log"
)

// runLarge lists, starts and uses an archive of many entities.
func runLarge(ctx context.Context, s *stage) error {
	count := s.plan.entities
	var arms []arm
	large, small, err := s.fillTwo(ctx, count, func(ctx context.Context, srv *server, part int) (int, error) {
		return count / tenths, srv.storeEntities(ctx, fmt.Sprintf("sbd-%03d", part), count/tenths)
	})
	if err != nil {
		return err
	}
	for _, srv := range large {
		arms = append(arms,
			listArm(srv, byCreation, "created_after=2000-01-01", count),
			listArm(srv, byModification, "last_modified_after=2000-01-01", count))
	}
	if _, err := s.measure(ctx, table{Title: "Listing all identifiers", Columns: plain(rate, took, memory)}, arms); err != nil {
		return err
	}
	return s.grown(ctx, small, large, []op{
		{"GET one entity", readEntities, func(_ context.Context, _ *server, connections int) ([]worker, error) {
			return workers(connections, func(i int) worker {
				random := rand.New(rand.NewPCG(8, uint64(i)))
				return worker{next: func() request {
					id := identifier(fmt.Sprintf("sbd-%03d", random.IntN(tenths)), random.IntN(count/tenths))
					return request{method: "GET", path: api + "/sbds/" + id}
				}}
			}), nil
		}},
		{"PUT a new entity", createEntities, createEntities},
		{"PUT an update", updateEntities, updateEntities},
		{"record", recordEach, recordEach},
		{"list, the first 100", listPage("sbds"), listPage("sbds")},
	})
}

// listArm asks for everything in one answer, over one connection, an oda that
// was just started: one that has worked holds memory that a listing could use
// unseen.
func listArm(srv *server, detail, query string, count int) arm {
	return arm{name: srv.arm(detail), run: func(ctx context.Context, _ time.Duration) (sample, error) {
		if _, err := srv.restart(ctx); err != nil {
			return nil, err
		}
		// The first request also connects to the database.
		if _, err := srv.do(ctx, "GET", api+"/sbds?limit=1&"+query, nil); err != nil {
			return nil, err
		}
		before, err := srv.resident()
		if err != nil {
			return nil, err
		}
		if err := srv.resetPeak(); err != nil {
			return nil, err
		}
		begin := time.Now()
		answer, err := srv.do(ctx, "GET", api+"/sbds?"+query, nil)
		if err != nil {
			return nil, err
		}
		seconds := time.Since(begin).Seconds()
		if n := bytes.Count(answer, []byte(`"sbd-`)); n != count {
			return nil, fmt.Errorf("a listing has %d identifiers, not %d", n, count)
		}
		after, err := srv.peak()
		return sample{rate: float64(count) / seconds, took: seconds, memory: max(0, after-before)}, err
	}}
}

// listPage lists the first 100 of a collection.
func listPage(collection string) work {
	return func(_ context.Context, _ *server, connections int) ([]worker, error) {
		page := []request{{method: "GET", path: api + "/" + collection + "?limit=100&created_after=2000-01-01"}}
		return workers(connections, func(i int) worker { return anyOf(i, page) }), nil
	}
}

// runScale fills an archive with many records.
func runScale(ctx context.Context, s *stage) error {
	// From 2,000 to 20,000 records, evenly mixed.
	var lengths []int
	for left := s.plan.records; left > 0; {
		lengths = append(lengths, min(left, 2000*(1+len(lengths)*7%10)))
		left -= lengths[len(lengths)-1]
	}
	large, small, err := s.fillTwo(ctx, s.plan.records, func(ctx context.Context, srv *server, part int) (int, error) {
		var sum atomic.Int64
		from, to := part*len(lengths)/tenths, (part+1)*len(lengths)/tenths
		err := parallel(ctx, to-from, func(ctx context.Context, i int) error {
			sum.Add(int64(lengths[from+i]))
			id := identifier("eb-scale", from+i)
			if _, err := srv.do(ctx, "PUT", api+"/ebs/"+id, block(id)); err != nil {
				return err
			}
			return srv.lengthen(ctx, id, lengths[from+i])
		})
		return int(sum.Load()), err
	})
	if err != nil {
		return err
	}
	for _, srv := range large {
		if err := s.parts(ctx, srv); err != nil {
			return err
		}
	}
	page := func(prefix string, blocks int) work {
		return func(_ context.Context, _ *server, connections int) ([]worker, error) {
			requests := make([]request, 1000)
			for i := range requests {
				requests[i] = request{method: "GET", path: fmt.Sprintf("%s/ebs/%s/request_responses?limit=100&after=%d", api, identifier(prefix, i*7%blocks), i)}
			}
			return workers(connections, func(i int) worker { return anyOf(i, requests) }), nil
		}
	}
	return s.grown(ctx, small, large, []op{
		{"record", recordEach, recordEach},
		{"GET one entity", readEntities, readEntities},
		{"GET 100 records of a block", func(ctx context.Context, srv *server, connections int) ([]worker, error) {
			ids, err := srv.storeBlocks(ctx, "eb-page", 1)
			if err == nil {
				err = srv.lengthen(ctx, ids[0], 2000)
			}
			if err != nil {
				return nil, err
			}
			return page("eb-page", 1)(ctx, srv, connections)
		}, page("eb-scale", len(lengths))},
		{"list, the first 100", listPage("ebs"), listPage("ebs")},
	})
}

// tenths are the parts in which an archive is filled.
const tenths = 10

// fillTwo starts every oda twice, fills one of the two with count rows, part by
// part, and says what that took for one of them. A fill returns how many rows
// its part has.
func (s *stage) fillTwo(ctx context.Context, count int, fill func(ctx context.Context, srv *server, part int) (int, error)) (large, small []*server, err error) {
	if large, err = s.startOdas(ctx); err != nil {
		return nil, nil, err
	}
	if small, err = s.startOdas(ctx); err != nil {
		return nil, nil, err
	}
	filling := &table{
		Title:   fmt.Sprintf("Filling with %s, for one of them", format(float64(count), "")),
		Columns: plain(firstTenth, lastTenth, disk, written, logged),
	}
	each := float64(count)
	for _, srv := range large {
		wroteBefore, logBefore, err := srv.output(ctx)
		if err != nil {
			return nil, nil, err
		}
		var rates []float64
		for part := range tenths {
			begin := time.Now()
			rows, err := fill(ctx, srv, part)
			if err != nil {
				return nil, nil, err
			}
			rates = append(rates, float64(rows)/time.Since(begin).Seconds())
			s.say("  %s: %d %% filled, %s per second", srv.arm(""), 100*(part+1)/tenths, format(rates[part], ""))
		}
		if err := srv.settle(ctx); err != nil {
			return nil, nil, err
		}
		wrote, log, err := srv.output(ctx)
		if err != nil {
			return nil, nil, err
		}
		sizes, err := srv.sizes(ctx)
		if err != nil {
			return nil, nil, err
		}
		stored := 0.0
		for _, size := range sizes {
			stored += size
		}
		figures := map[figure][]float64{
			firstTenth: {rates[0]}, lastTenth: {rates[tenths-1]}, disk: {stored / each}, written: {(wrote - wroteBefore) / each},
		}
		if log > 0 {
			figures[logged] = []float64{(log - logBefore) / each}
		}
		filling.Series = append(filling.Series, series{Arm: srv.arm(""), Rounds: figures})
	}
	s.section.Tables = append(s.section.Tables, filling)
	return large, small, nil
}

// op is a kind of work that is done on a small and on a large archive.
type op struct {
	name         string
	small, large work
}

// grown starts oda on small and large archives, and does the same work on both.
func (s *stage) grown(ctx context.Context, small, large []*server, ops []op) error {
	var starts, arms []arm
	for i := range large {
		for _, place := range []struct {
			srv    *server
			detail string
		}{{large[i], ", start"}, {small[i], ", start" + onSmall}} {
			starts = append(starts, arm{name: place.srv.arm(place.detail), run: func(ctx context.Context, _ time.Duration) (sample, error) {
				lasted, err := place.srv.restart(ctx)
				return sample{took: lasted.Seconds()}, err
			}})
		}
	}
	if _, err := s.measure(ctx, table{Title: "Starting", Columns: []column{over(took), over(took, onSmall)}}, starts); err != nil {
		return err
	}
	for i := range large {
		for _, o := range ops {
			many, err := o.large(ctx, large[i], s.plan.busy)
			if err != nil {
				return err
			}
			few, err := o.small(ctx, small[i], s.plan.busy)
			if err != nil {
				return err
			}
			arms = append(arms, loadArm(large[i], ", "+o.name, many, 1), loadArm(small[i], ", "+o.name+onSmall, few, 1))
		}
	}
	_, err := s.measure(ctx, table{Title: "Working", Columns: []column{over(cost), over(cost, onSmall), over(p50), over(p99)}}, arms)
	return err
}

// output is what was written to disk so far, and how much of it went to
// PostgreSQL's write-ahead log.
func (srv *server) output(ctx context.Context) (bytes, log float64, err error) {
	processes := []int{srv.cmd.Process.Pid}
	if srv.database != "" {
		log, err = srv.stage.query(ctx, srv.db, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8")
		if err != nil {
			return 0, 0, err
		}
		postmaster := srv.stage.cluster.PID()
		children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster))
		if err != nil {
			return 0, 0, err
		}
		processes = []int{postmaster} // has what children wrote that have ended
		for child := range strings.FieldsSeq(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return 0, 0, err
			}
			processes = append(processes, pid)
		}
	}
	for _, pid := range processes {
		n, err := proc(pid, "io", "write_bytes")
		if err != nil && !os.IsNotExist(err) { // it has ended meanwhile
			return 0, 0, err
		}
		bytes += n
	}
	return bytes, log, nil
}

// sizes are the bytes of each table and index of an archive.
func (srv *server) sizes(ctx context.Context) (map[string]float64, error) {
	sizes := map[string]float64{}
	if srv.database == "" {
		conn, err := sqlite.OpenConn(strings.TrimPrefix(srv.db, "sqlite:"), sqlite.OpenReadOnly)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return sizes, sqlitex.ExecuteTransient(conn, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error {
				sizes[stmt.ColumnText(0)] = stmt.ColumnFloat(1)
				return nil
			},
		})
	}
	conn, err := pgx.Connect(ctx, srv.db)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `SELECT relname, (pg_total_relation_size(oid) - CASE relkind WHEN 'r' THEN pg_indexes_size(oid) ELSE 0 END)::float8
		FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')`)
	if err != nil {
		return nil, err
	}
	var name string
	var size float64
	_, err = pgx.ForEachRow(rows, []any{&name, &size}, func() error {
		sizes[name] = size
		return nil
	})
	return sizes, err
}

// parts says where the bytes of an archive of many records are.
func (s *stage) parts(ctx context.Context, srv *server) error {
	sizes, err := srv.sizes(ctx)
	if err != nil {
		return err
	}
	where := &table{Title: "Where the bytes of a record are, " + srv.arm(""), Columns: plain(disk)}
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) }) {
		if each := sizes[name] / float64(s.plan.records); each >= 1 {
			where.Series = append(where.Series, series{Arm: name, Rounds: map[figure][]float64{disk: {each}}})
		}
	}
	s.section.Tables = append(s.section.Tables, where)
	return nil
}
