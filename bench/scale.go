package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// runScale fills an archive with many records.
func runScale(ctx context.Context, s *stage) error {
	// The lengths are spread evenly between 2,000 and 20,000 records.
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
				requests[i] = get(fmt.Sprintf("%s/ebs/%s/request_responses?limit=100&after=%d", api, identifier(prefix, i*7%blocks), i))
			}
			return shuffled(connections, requests...), nil
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

// output returns how many bytes were written to disk so far, and how many of
// them to PostgreSQL's write-ahead log.
func (srv *server) output(ctx context.Context) (bytes, log float64, err error) {
	processes := []int{srv.PID()}
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
		processes = []int{postmaster} // includes the output of children that have ended
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
		if err != nil && !os.IsNotExist(err) { // the process has ended in the meantime
			return 0, 0, err
		}
		bytes += n
	}
	return bytes, log, nil
}

// sizes returns the size of each table and index of an archive.
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

// parts shows which tables and indexes take the space in an archive of many
// records.
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
