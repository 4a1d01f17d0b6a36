package work

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/bench/measure"
	"oda/bench/report"
)

// output is what was written to disk so far.
type output struct{ bytes, log int64 }

// written reads what an engine has written: the oda process itself, or all
// processes of the PostgreSQL cluster.
func (s *stage) written(ctx context.Context, e *engine) (output, error) {
	if e.arm != onPostgres {
		n, err := writtenBy(e.server.PID)
		return output{bytes: n}, err
	}
	var out output
	if err := ask(ctx, e.db, &out.log, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"); err != nil {
		return output{}, err
	}
	// The server process is the parent of all others, and what children
	// wrote that have ended counts with it.
	cluster, err := s.lab.Postgres(ctx)
	if err != nil {
		return output{}, err
	}
	for _, pid := range append(childrenOf(cluster.PID()), cluster.PID()) {
		n, err := writtenBy(pid)
		if os.IsNotExist(err) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return output{}, err
		}
		out.bytes += n
	}
	return out, nil
}

// parentOf reads the parent of a process.
func parentOf(pid int) (int, error) {
	value, err := procValue(filepath.Join("/proc", strconv.Itoa(pid), "status"), "PPid:")
	return int(value), err
}

// childrenOf finds the processes whose parent this is.
func childrenOf(pid int) []int {
	var children []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(child); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// writtenBy is what a process caused to be written to disk.
func writtenBy(pid int) (int64, error) {
	return procValue(filepath.Join("/proc", strconv.Itoa(pid), "io"), "write_bytes:")
}

// procValue reads a number behind a name in a file of /proc.
func procValue(path, name string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name); found {
			return strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s in %s", name, path)
}

// storedParts is the size of each table and index of an archive.
func storedParts(ctx context.Context, e *engine) (map[string]int64, error) {
	if e.arm == onPostgres {
		return postgresParts(ctx, e.db)
	}
	return sqliteParts(ctx, strings.TrimPrefix(e.db, "sqlite:"))
}

func postgresParts(ctx context.Context, dsn string) (map[string]int64, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT relname, pg_total_relation_size(oid) - CASE relkind WHEN 'r' THEN pg_indexes_size(oid) ELSE 0 END
		FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')`)
	if err != nil {
		return nil, fmt.Errorf("asking PostgreSQL for sizes: %w", err)
	}
	parts := map[string]int64{}
	var name string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&name, &size}, func() error {
		parts[name] = size
		return nil
	})
	return parts, err
}

func sqliteParts(ctx context.Context, path string) (map[string]int64, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	conn.SetInterrupt(ctx.Done())
	parts := map[string]int64{}
	err = sqlitex.ExecuteTransient(conn, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			parts[stmt.ColumnText(0)] = stmt.ColumnInt64(1)
			return nil
		},
	})
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return parts, err
}

// presentScale writes the section.
func (s *stage) presentScale(engines []EngineScale) {
	s.note("An archive of %s records in blocks of %s to %s is filled by batches of up to %s records over %d connections, each record under "+
		"its idempotency key, on one engine after the other. Then operations are measured on it and on an empty archive in turn, over %d connections.",
		thousands(s.plan.scaleRecords), thousands(s.plan.scaleShortest), thousands(s.plan.scaleLongest), thousands(largestBatch), s.plan.fillers, s.plan.busy)
	filling := report.Table{Title: "Filling and storing", Columns: []string{""}}
	against := report.Table{Title: "Cost on the large archive ÷ on an empty one", Columns: []string{""}}
	rows := map[string][]string{}
	order := []string{
		"records/s, first tenth", "records/s, last tenth", "last ÷ first tenth", "bytes of one record as sent", "bytes of one record on disk",
		"on disk ÷ as sent", "written while filling ÷ as sent", "of that, write-ahead log", "archive on disk", "blocks",
	}
	costs := map[string][]string{}
	costOrder := append(slices.Clone(scaleNames), "start", "start, empty archive")
	var plot lines
	for _, e := range engines {
		filling.Columns, against.Columns = append(filling.Columns, e.Engine), append(against.Columns, e.Engine)
		n, payload := float64(e.Records), float64(e.Payload)
		first, last := e.Tenths[0], e.Tenths[len(e.Tenths)-1]
		log := "–"
		if e.Log > 0 {
			log = report.Num(float64(e.Log) / payload)
		}
		for i, value := range []string{
			report.Num(first), report.Num(last), report.Num(last / first), report.Num(payload / n), report.Num(float64(e.Stored) / n),
			report.Num(float64(e.Stored) / payload), report.Num(float64(e.Written) / payload), log, report.Bytes(float64(e.Stored)), thousands(e.Blocks),
		} {
			rows[order[i]] = append(rows[order[i]], value)
		}
		for _, name := range scaleNames {
			costs[name] = append(costs[name], report.Times(e.Costs[name]))
		}
		costs["start"] = append(costs["start"], report.SpreadValue(e.Start, "s"))
		costs["start, empty archive"] = append(costs["start, empty archive"], report.SpreadValue(e.StartEmpty, "s"))
		for i, rate := range e.Tenths {
			plot.add("oda on "+e.Engine, float64(i+1)*n/10, measure.Spread{Median: rate})
		}
		s.section.Tables = append(s.section.Tables, partsTable(e))
	}
	for _, name := range order {
		filling.Rows = append(filling.Rows, append([]string{name}, rows[name]...))
	}
	for _, name := range costOrder {
		against.Rows = append(against.Rows, append([]string{name}, costs[name]...))
	}
	s.section.Tables = append([]report.Table{filling, against}, s.section.Tables...)
	s.section.Plots = append(s.section.Plots, report.Plot{
		ID: "scale-filling", Title: "Filling an archive with records", XLabel: "records in the archive", YLabel: "records in a second", Lines: plot.all,
	})
}

// partsTable shows where the bytes of an archive are, the largest first.
func partsTable(e EngineScale) report.Table {
	table := report.Table{Title: "Where the bytes are, " + e.Engine, Columns: []string{"table or index", "bytes", "for one record"}}
	names := slices.SortedFunc(maps.Keys(e.Parts), func(a, b string) int { return int(e.Parts[b] - e.Parts[a]) })
	for _, name := range names {
		if size := e.Parts[name]; float64(size) > 0.001*float64(e.Stored) {
			table.Rows = append(table.Rows, []string{"`" + name + "`", report.Bytes(float64(size)), report.Num(float64(size) / float64(e.Records))})
		}
	}
	return table
}
