package postgres

import (
	"context"
	"encoding/json"
	"math"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/engine/migrate"
)

// logStep makes the log of changes and enters everything that is stored.
func logStep(rows int) step {
	return step{
		Number: 9, Name: "the log of changes", Checksum: "the log of changes 1",
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			return logStored(ctx, tx, at, rows)
		},
	}
}

const (
	// An older program must not write any more, since its records would be missing
	// from the log. So the functions that it calls get other names, and its writes
	// fail as a whole.
	makeLog = `LOCK TABLE heads, versions, records IN ACCESS EXCLUSIVE MODE;
		ALTER FUNCTION archive_version_seal RENAME TO archive_seal_of_version;
		ALTER FUNCTION archive_record_seal RENAME TO archive_seal_of_record;
		ALTER SEQUENCE positions RENAME TO numbers;
		ALTER TABLE versions RENAME COLUMN position TO number;
		CREATE INDEX versions_number ON versions (number);
		CREATE INDEX records_position ON records (position);
		CREATE TABLE recordings ( -- one row per transaction that recorded
			number bigint   PRIMARY KEY,
			width  integer  NOT NULL, -- how many records
			names  text[]   COMPRESSION lz4 NOT NULL, -- identifier of a block and user, ...
			places bigint[] COMPRESSION lz4 NOT NULL  -- version of the block, first and last sequence, recorded_on of the last, ...
		);
		CREATE TABLE rounds ( -- one row per round of numbering
			after bigint   PRIMARY KEY, -- position behind which it begins
			last  bigint   NOT NULL,    -- position at which it ends
			seen  bigint   NOT NULL,    -- the highest number of this round and all before
			runs  bigint[] COMPRESSION lz4 NOT NULL, -- numbers of the round: first, last, ...
			gaps  bigint[] COMPRESSION lz4, -- lower numbers that may still come: first, last, ...; NULL: none
			since bigint[] COMPRESSION lz4  -- for each gap, the transaction that noted it
		)`

	// selectUnlogged reads what is stored, in the order of the old positions, which
	// were assigned before the commit. The sequence is 0 for a version, and NULL for a
	// record that came with one. Of several records of a block in one transaction, the
	// last one (n) got the lowest position. It is entered with the one before it.
	selectUnlogged = `(SELECT number AS position, kind, identifier, version, 0::bigint AS sequence, sequence_after - sequence_before + 1, stored_by, stored_on,
				false, NULL, NULL::bigint
			FROM versions WHERE number > $1 ORDER BY number LIMIT $2)
		UNION ALL
		(SELECT r.position, r.kind, r.identifier, r.version, CASE WHEN r.sequence <= v.sequence_after THEN NULL ELSE r.sequence END, 1, r.recorded_by, r.recorded_on,
				coalesce(b.position > r.position, false), n.recorded_by, n.recorded_on
			FROM records r LEFT JOIN LATERAL (SELECT sequence_after FROM versions
				WHERE kind = r.kind AND identifier = r.identifier AND version = r.version OFFSET 0) v ON true
			LEFT JOIN LATERAL (SELECT position FROM records
				WHERE kind = r.kind AND identifier = r.identifier AND sequence = r.sequence - 1 OFFSET 0) b ON true
			LEFT JOIN LATERAL (SELECT recorded_by, recorded_on FROM records
				WHERE kind = r.kind AND identifier = r.identifier AND sequence = r.sequence + 1 AND position < r.position OFFSET 0) n ON true
			WHERE r.position > $1 ORDER BY r.position LIMIT $2)
		ORDER BY position LIMIT $2`

	useLog = `DROP INDEX records_position;
		ALTER TABLE records DROP COLUMN position, DROP COLUMN transaction;
		ALTER TABLE versions DROP COLUMN transaction`
)

// logging is how far the step has come.
type logging struct {
	Read  int64        `json:"read"` // the last old position that was read
	End   oda.Position `json:"end"`  // of the log
	Done  int64        `json:"done"`
	Total int64        `json:"total"`
}

// logStored does a part of the step: it makes the tables, enters some of what is
// stored, or drops what is no longer needed.
func logStored(ctx context.Context, tx pgx.Tx, at string, rows int) (migrate.Part, error) {
	where := logging{Read: math.MinInt64}
	var err error
	if at != "" {
		err = json.Unmarshal([]byte(at), &where)
	}
	if err != nil {
		return migrate.Part{}, err
	}
	if at == "" {
		if err = script(ctx, tx, makeLog); err == nil {
			err = tx.QueryRow(ctx, "SELECT coalesce(sum(version + last_sequence), 0)::bigint FROM heads").Scan(&where.Total)
		}
	} else {
		var n int
		n, err = logSome(ctx, tx, &where, rows)
		if n == 0 && err == nil {
			return migrate.Part{Done: where.Done, Total: where.Total, End: true}, script(ctx, tx, useLog)
		}
	}
	if err != nil {
		return migrate.Part{}, err
	}
	text, err := json.Marshal(where)
	return migrate.Part{At: string(text), Done: where.Done, Total: where.Total}, err
}

// logSome enters the next part into the log, in the order in which it was written.
// It returns how much that was.
func logSome(ctx context.Context, tx pgx.Tx, where *logging, most int) (n int, err error) {
	rows, err := tx.Query(ctx, selectUnlogged, where.Read, most)
	if err != nil {
		return 0, err
	}
	p := logPart{logging: where}
	var kind int16
	var c oda.Change
	var sequence, nextOn *int64
	var nextBy *string
	var width int64
	var early bool
	_, err = pgx.ForEachRow(rows, []any{&p.at, &kind, &c.ID, &c.Version, &sequence, &width, &c.By, &c.On, &early, &nextBy, &nextOn}, func() error {
		n++
		c.Kind = oda.Kind(kind)
		switch {
		case sequence == nil || early: // it is entered with another row
		case *sequence == 0:
			p.store(width)
		default:
			if len(p.recorded) >= batchRecords {
				p.endRecording()
			}
			c.FirstSequence, c.LastSequence = *sequence, *sequence
			p.record(c)
			if nextBy != nil {
				c.FirstSequence, c.LastSequence, c.By, c.On = *sequence+1, *sequence+1, *nextBy, oda.Instant(*nextOn)
				p.record(c)
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		return 0, err
	}
	p.endRecording()
	p.endRound()
	where.Read, where.Done = p.at, where.Done+int64(n)
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"recordings"}, []string{"number", "width", "names", "places"}, pgx.CopyFromRows(p.recordings))
	if err == nil {
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"rounds"}, []string{"after", "last", "seen", "runs"}, pgx.CopyFromRows(p.rounds))
	}
	return n, err
}

// logPart makes a part of the log. The number of a row is its old position.
type logPart struct {
	*logging
	at         int64 // the number of the last row
	recordings [][]any
	rounds     [][]any

	recorded []oda.Change // the current recording
	number   int64        // of the last of its records
	width    int64        // positions of the current round
	numbers  int          // how many it has
	first    int64        // its lowest number
	seen     int64        // its highest
}

// store adds a version.
func (p *logPart) store(width int64) {
	p.endRecording()
	p.enter(p.at, width)
}

// record adds a record.
func (p *logPart) record(c oda.Change) {
	p.number = p.at
	if n := len(p.recorded); n > 0 {
		last := &p.recorded[n-1]
		c.Position = last.Position + 1
		if last.Join(c) {
			return
		}
	}
	p.recorded = append(p.recorded, c)
}

// endRecording enters the records that were added.
func (p *logPart) endRecording() {
	if len(p.recorded) == 0 {
		return
	}
	var width int64
	var names []string
	var places []int64
	for _, c := range p.recorded {
		width += c.LastSequence - c.FirstSequence + 1
		names = append(names, c.ID, c.By)
		places = append(places, c.Version, c.FirstSequence, c.LastSequence, int64(c.On))
	}
	p.recordings = append(p.recordings, []any{p.number, width, names, places})
	p.recorded = nil
	p.enter(p.number, width)
}

// enter enters a number into the round.
func (p *logPart) enter(number, width int64) {
	if p.numbers == 0 {
		p.first = number
	}
	p.numbers, p.width, p.seen = p.numbers+1, p.width+width, number
	if p.numbers == roundNumbers {
		p.endRound()
	}
}

// endRound makes a round of what has been entered. It notes no gaps, since missing
// numbers never appear.
func (p *logPart) endRound() {
	if p.numbers == 0 {
		return
	}
	last := p.End + oda.Position(p.width)
	p.rounds = append(p.rounds, []any{int64(p.End), int64(last), p.seen, []int64{p.first, p.seen}})
	p.End, p.numbers, p.width = last, 0, 0
}
