package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Arms of moving.
const (
	exporting   = ", export"
	importing   = ", import"
	copying     = "COPY into the same tables"
	rawCopy     = "raw SQLite, the same statements"
	rawTogether = 380 // entities in a transaction: about 2 MiB, as in an import

	copiedTogether = 2 * rawTogether // since PostgreSQL mostly is the slower part of an import
)

// runMoving exports an archive of documents of 5 KB, and imports the export, straight
// from and into databases.
func runMoving(ctx context.Context, s *stage) error {
	program, n := s.odas[0].path, s.plan.moved
	documents, export := s.file(".ndjson"), s.file(".zst")
	if err := writeDocuments(documents, n); err != nil {
		return err
	}
	var arms []arm
	var sources []*server
	for _, engine := range []string{onSQLite, onPostgres} {
		srv, err := s.startOda(ctx, s.odas[0], engine)
		if err != nil {
			return err
		}
		if err := srv.end(); err != nil {
			return err
		}
		source := documents
		if engine == onPostgres {
			source = export
		}
		if _, err := timed(ctx, n, program, "import", source, "-q", "--preserve", "--db", srv.db); err != nil {
			return err
		}
		if _, err := timed(ctx, n, program, "export", "-o", export, "--force", "-q", "--db", srv.db); err != nil {
			return err
		}
		sources = append(sources, srv)
		arms = append(arms, arm{name: engine + exporting, run: func(ctx context.Context, _ time.Duration) (sample, error) {
			return timed(ctx, n, program, "export", "-o", s.file(".zst"), "-q", "--db", srv.db)
		}}, arm{name: engine + importing, run: func(ctx context.Context, _ time.Duration) (sample, error) {
			return s.fresh(ctx, engine, func(db string) (sample, error) {
				return timed(ctx, n, program, "import", export, "-q", "--preserve", "--db", db)
			})
		}})
	}
	arms = append(arms, arm{name: rawCopy, run: func(ctx context.Context, _ time.Duration) (sample, error) {
		return s.fresh(ctx, onSQLite, func(db string) (sample, error) { return copyRaw(ctx, n, sources[0].db, db) })
	}}, arm{name: copying, run: func(ctx context.Context, _ time.Duration) (sample, error) {
		return s.fresh(ctx, onPostgres, func(db string) (sample, error) { return copyTables(ctx, n, sources[1].db, db) })
	}})
	return s.measure(ctx, table{sized: true, Columns: append(plain(rate, memory), over(rate, rawCopy), over(rate, copying))}, arms)
}

// fresh calls work with a database that has an empty archive.
func (s *stage) fresh(ctx context.Context, engine string, work func(db string) (sample, error)) (sample, error) {
	srv, err := s.startOda(ctx, s.odas[0], engine)
	if err != nil {
		return nil, err
	}
	if err := srv.end(); err != nil {
		return nil, err
	}
	defer os.Remove(strings.TrimPrefix(srv.db, "sqlite:")) // the stage drops databases of PostgreSQL
	return work(srv.db)
}

// writeDocuments writes documents with their metadata, one on each line.
func writeDocuments(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	for i := range n {
		text := strings.ReplaceAll(string(documentOf(identifier("sbd-mov", i))), "\n", " ")
		text = strings.TrimSuffix(strings.TrimSpace(text), "}")
		fmt.Fprintf(out, `%s,"metadata":{"version":1,"created_by":"ada","created_on":"2026-01-01T00:00:00.000000Z"}}`+"\n", text)
	}
	return out.Flush()
}

// timed runs a command that handles n documents. Its memory is looked at all the time:
// what the operating system says at the end includes this program, which started it.
func timed(ctx context.Context, n int, program string, args ...string) (sample, error) {
	command := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	began := time.Now()
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for peak := 0.0; ; {
		select {
		case err := <-ended:
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %s", args[0], err, out.Bytes())
			}
			return sample{rate: float64(n) / time.Since(began).Seconds(), memory: peak * 1024}, nil
		case <-time.After(20 * time.Millisecond):
			if now, err := proc(command.Process.Pid, "status", "VmHWM"); err == nil { // else it has just ended
				peak = now
			}
		}
	}
}

// copyRaw writes the rows of one archive into another, with the statements of an
// import and nothing else. Each entity has some thirty terms.
func copyRaw(ctx context.Context, n int, from, to string) (sample, error) {
	conn, err := sqlite.OpenConn(strings.TrimPrefix(to, "sqlite:"), sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for pragma := range strings.SplitSeq(rawPragmas+"; ATTACH '"+strings.TrimPrefix(from, "sqlite:")+"' AS source", ";") {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for entity := 1; entity <= n && ctx.Err() == nil; {
		end, err := sqlitex.ImmediateTransaction(conn)
		if err != nil {
			return nil, err
		}
		for range rawTogether {
			for _, statement := range []string{
				"INSERT INTO heads SELECT * FROM source.heads WHERE entity = ?1",
				"INSERT INTO catalogue SELECT * FROM source.catalogue WHERE entity = ?1",
				"INSERT INTO versions SELECT * FROM source.versions WHERE position = ?1",
				"INSERT INTO terms (rowid, list) VALUES (?1, ' 1w' || ?1 || ' 1cn1 1cn2 1cn3 1cn4 1cn5 1cn6 1cn7 1cn8 1cn9 1cna 1cnb 1cnc 1cnd 1cne 1cnf 1cng 1cnh 1cni 1cnj 1cnk 1cnl 1cnm 1cnn 1cno 1cnp 1cnq 1cnr 1tska_mid ')",
			} {
				if err == nil {
					err = sqlitex.Execute(conn, statement, &sqlitex.ExecOptions{Args: []any{entity}})
				}
			}
			if entity++; entity > n {
				break
			}
		}
		if err == nil {
			err = sqlitex.Execute(conn, "UPDATE state SET last_position = ?1, indexed_entity = ?1", &sqlitex.ExecOptions{Args: []any{entity - 1}})
		}
		if err == nil {
			err = sqlitex.Execute(conn, "INSERT OR REPLACE INTO counts VALUES (1, ?1)", &sqlitex.ExecOptions{Args: []any{entity - 1}})
		}
		if end(&err); err != nil {
			return nil, err
		}
	}
	return sample{rate: float64(n) / time.Since(began).Seconds()}, ctx.Err()
}

// copyTables copies the rows of one database into the tables of another, in transactions
// as those of an import: all but the last do not wait for the disk.
func copyTables(ctx context.Context, n int, from, to string) (sample, error) {
	source, err := pgx.Connect(ctx, from)
	if err != nil {
		return nil, err
	}
	defer source.Close(context.WithoutCancel(ctx))
	target, err := pgx.Connect(ctx, to)
	if err != nil {
		return nil, err
	}
	defer target.Close(context.WithoutCancel(ctx))
	tables := []string{"heads", "creations", "catalogue", "versions"}
	var used time.Duration
	for first := 0; first < n; first += copiedTogether {
		rows := make([]bytes.Buffer, len(tables))
		for i, table := range tables {
			_, err := source.PgConn().CopyTo(ctx, &rows[i], fmt.Sprintf("COPY (SELECT * FROM %s WHERE kind = 1 AND identifier BETWEEN '%s' AND '%s') TO STDOUT (FORMAT binary)",
				table, identifier("sbd-mov", first), identifier("sbd-mov", first+copiedTogether-1)))
			if err != nil {
				return nil, err
			}
		}
		wait := "off"
		if first+copiedTogether >= n {
			wait = "on"
		}
		began := time.Now()
		err := pgx.BeginFunc(ctx, target, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = "+wait)
			for i, table := range tables {
				if err == nil {
					_, err = target.PgConn().CopyFrom(ctx, &rows[i], "COPY "+table+" FROM STDIN (FORMAT binary)")
				}
			}
			return err
		})
		used += time.Since(began)
		if err != nil {
			return nil, err
		}
	}
	return sample{rate: float64(n) / used.Seconds()}, nil
}
