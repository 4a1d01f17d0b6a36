package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// script is what pgbench does over and over on a database made by the archive.
// Texts and bodies are variables, which pgbench sends as parameters with every
// statement, as the archive does.
type script struct {
	text      string
	variables map[string]string
}

// scripted prepares the database of an oda for a script.
type scripted func(ctx context.Context, srv *server, connections int) (script, error)

// sessionSettings are the settings of the archive's own connections that affect
// plans.
const sessionSettings = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"

// spacing separates the number ranges of the connections of one run.
const spacing = 1000

// seals take the place of a digest and a seal, and are as long as these.
var seals = fmt.Sprintf(`'\x%064d'::bytea, '\x%016d'::bytea`, 0, 0)

// someEntity picks one of count entities.
func someEntity(prefix string, count int) (set, expression string) {
	return fmt.Sprintf(`\set i random(0, %d)`, count-1), fmt.Sprintf(`('%s-' || lpad(:i::text, 9, '0'))`, prefix)
}

// readScript reads an entity by its key, as the archive does.
func readScript(ctx context.Context, srv *server, _ int) (script, error) {
	set, id := someEntity("sbd-pgb", hot)
	return script{text: set + `
SELECT h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence, v.sequence_after, v.runs, v.slots, v.text FROM heads h CROSS JOIN LATERAL (SELECT * FROM versions WHERE kind = h.kind AND identifier = h.identifier AND version = h.version OFFSET 0) v WHERE h.kind = 1 AND h.identifier = ` + id + ";\n"},
		srv.storeEntities(ctx, "sbd-pgb", hot)
}

// recordScript inserts one row per transaction, like those of the archive,
// without looking at the block or updating its head.
func recordScript(context.Context, *server, int) (script, error) {
	return script{
		text: fmt.Sprintf(`\set n :n + 1
\set sequence :base + :n * %d + :client_id
INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal) VALUES (3, 'eb-pgb-' || :client_id::text, :sequence, 1, 'DefaultUser', :sequence, :record, %s);
`, spacing, seals),
		variables: map[string]string{"record": escaped(record(1))},
	}, nil
}

// updateScript updates a head and inserts a version in one statement, and so in
// one round trip, as the archive does; it does not compare the metadata.
func updateScript(ctx context.Context, srv *server, connections int) (script, error) {
	count := own * connections
	if err := srv.storeEntities(ctx, "sbd-pgb", count); err != nil {
		return script{}, err
	}
	conn, err := pgx.Connect(ctx, srv.db)
	if err != nil {
		return script{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var text []byte
	var slots string
	err = conn.QueryRow(ctx, "SELECT text, slots::text FROM versions WHERE kind = 1 AND identifier = $1", identifier("sbd-pgb", 0)).Scan(&text, &slots)
	set, id := someEntity("sbd-pgb", count)
	return script{
		text: fmt.Sprintf(`%s
\set n :n + 1
\set now :base / %d + :n
WITH head AS (UPDATE heads h SET version = h.version + 1, last_modified_by = 'DefaultUser', last_modified_on = greatest(:now, h.last_modified_on + 1), listed_on = greatest(:now, h.last_modified_on + 1) WHERE h.kind = 1 AND h.identifier = %s RETURNING h.*), body AS (INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal) SELECT 1, identifier, version, last_modified_by, last_modified_on, last_sequence, last_sequence, NULL, :slots, :body, %s FROM head) SELECT version, created_by, created_on, last_modified_by, last_modified_on, last_sequence FROM head;
`, set, spacing, id, seals),
		variables: map[string]string{"slots": slots, "body": escaped(text)},
	}, err
}

// escaped formats bytes in PostgreSQL's escape format for bytea, in which only
// a backslash is special, so the length is the same as what the archive sends.
func escaped(text []byte) string { return strings.ReplaceAll(string(text), `\`, `\\`) }

// perSecond matches the rate in the output of pgbench.
var perSecond = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)

// pgbenchArm lets one thread of pgbench keep connections to the database of an
// oda busy. Its lengths are whole seconds.
func (s *stage) pgbenchArm(ctx context.Context, srv *server, prepare scripted, connections int) (arm, error) {
	sc, err := prepare(ctx, srv, connections)
	file := s.file(".sql")
	if err := errors.Join(err, os.WriteFile(file, []byte(sc.text), 0o600)); err != nil {
		return arm{}, err
	}
	return arm{name: pgbench, run: func(ctx context.Context, length time.Duration) (sample, error) {
		log := s.file(".pgbench")
		seconds := 1 + math.Ceil(length.Seconds()) // it may take most of the first one to connect
		args := []string{
			"PGOPTIONS=" + sessionSettings, "LC_ALL=C", s.cluster.Program("pgbench"),
			"-n", "-M", "prepared", "-j", "1", "-c", strconv.Itoa(connections), "-T", fmt.Sprint(seconds), "-f", file,
			// Logging the latency of every transaction would slow pgbench down.
			"-l", "--log-prefix", log, "--sampling-rate", fmt.Sprint(1 / math.Ceil(float64(connections)/8)),
			// Use numbers that no earlier run has used.
			"-D", fmt.Sprintf("base=%d", time.Now().UnixMicro()*spacing), "-D", "n=0",
		}
		for name, value := range sc.variables {
			args = append(args, "-D", name+"="+value)
		}
		out, err := run(ctx, ".", "env", append(args, srv.db)...)
		if err != nil {
			return nil, err
		}
		match := perSecond.FindStringSubmatch(out)
		if match == nil {
			return nil, fmt.Errorf("pgbench reports no rate: %s", out)
		}
		logs, err := filepath.Glob(log + ".*")
		if err != nil {
			return nil, err
		}
		var latencies []time.Duration
		for _, path := range logs {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(string(text)) {
				// The third word is the duration of a transaction.
				if micros, err := strconv.Atoi(strings.Fields(line)[2]); err == nil {
					latencies = append(latencies, time.Duration(micros)*time.Microsecond)
				}
			}
		}
		got, err := summary(latencies, length)
		if err == nil {
			got[rate], err = strconv.ParseFloat(match[1], 64)
		}
		return got, err
	}}, nil
}
