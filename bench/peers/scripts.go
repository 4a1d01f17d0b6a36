package peers

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Script is what pgbench does over and over on a database that the archive has
// made and filled. Texts and bodies are variables, which pgbench sends as
// parameters with every statement, as the archive does.
type Script struct {
	text      string
	variables map[string]string
}

// maxConnections bounds those of one run of pgbench, so that each connection
// can have numbers of its own.
const maxConnections = 1000

// selectCurrent is how the archive reads a head with the body of its current
// version: internal/postgres/read.go.
const selectCurrent = `SELECT h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	v.sequence_after, v.runs, v.slots, v.text, '', ''::bytea
	FROM heads h CROSS JOIN LATERAL (SELECT * FROM versions
		WHERE kind = h.kind AND identifier = h.identifier AND version = h.version OFFSET 0) v
	WHERE h.kind = $1 AND h.identifier = $2`

// oneOf picks one of the SBDefinitions prefix-000000000, prefix-000000001, ...
const oneOf = `('%s-' || lpad(:i::text, 9, '0'))`

// GetScript reads one of count SBDefinitions by its key.
func GetScript(prefix string, count int) Script {
	statement := strings.NewReplacer("$1", "1", "$2", fmt.Sprintf(oneOf, prefix)).Replace(selectCurrent)
	return Script{text: fmt.Sprintf("\\set i random(0, %d)\n%s;\n", count-1, oneLine(statement))}
}

// RecordScript inserts one record per transaction into one of so many blocks,
// as a row like those that the archive writes, but with no look at the block
// and without moving its head. The block need not exist: nothing refers to it.
func RecordScript(prefix string, blocks int) Script {
	return Script{
		text: fmt.Sprintf(`\set n :n + 1
\set sequence :base + :n * %d + :client_id
\set block :client_id %% %d
INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text) VALUES (3, '%s-' || :block::text, :sequence, 1, 'DefaultUser', :sequence, NULL, NULL, :record);
`, maxConnections, blocks, prefix),
		variables: map[string]string{"record": escaped(Record(1))},
	}
}

// UpdateScript stores one of count SBDefinitions again: it moves the head and
// inserts a version, in one statement and so in one transaction and one trip.
// The archive's statement does that too, and besides compares the metadata.
// The body is one that the archive has stored.
func UpdateScript(ctx context.Context, dsn, prefix string, count int) (Script, error) {
	var text []byte
	var slots string
	err := withConn(ctx, dsn, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT text, slots::text FROM versions WHERE kind = 1 AND identifier LIKE $1 || '-%' LIMIT 1",
			prefix).Scan(&text, &slots)
	})
	if err != nil {
		return Script{}, fmt.Errorf("read a stored SBDefinition: %w", err)
	}
	statement := fmt.Sprintf(`WITH head AS (UPDATE heads h
		SET version = h.version + 1, last_modified_by = 'DefaultUser', last_modified_on = greatest(:now, h.last_modified_on + 1),
			listed_on = greatest(:now, h.last_modified_on + 1)
		WHERE h.kind = 1 AND h.identifier = `+oneOf+`
		RETURNING h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence),
	body AS (INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text)
		SELECT 1, identifier, version, last_modified_by, last_modified_on, last_sequence, last_sequence, NULL, :slots, :body FROM head)
	SELECT version, created_by, created_on, last_modified_by, last_modified_on, last_sequence FROM head`, prefix)
	return Script{
		text:      fmt.Sprintf("\\set i random(0, %d)\n\\set n :n + 1\n\\set now :base / %d + :n\n%s;\n", count-1, maxConnections, oneLine(statement)),
		variables: map[string]string{"slots": slots, "body": escaped(text)},
	}, nil
}

// oneLine joins the lines of a statement.
func oneLine(statement string) string { return strings.Join(strings.Fields(statement), " ") }

// escaped writes bytes in PostgreSQL's escape format for bytea, in which only a
// backslash is special. It is as long as the bytes, as is what the archive
// sends.
func escaped(text []byte) string { return strings.ReplaceAll(string(text), `\`, `\\`) }
