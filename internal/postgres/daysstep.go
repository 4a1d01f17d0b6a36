package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
)

// callDaysStep makes the index of days and fills it with the stored records.
func callDaysStep(rows int) step {
	return step{
		Number: 7, Name: "index the days of calls", Checksum: "index the days of calls 1",
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			return indexDays(ctx, tx, at, rows)
		},
	}
}

const (
	// A unique key begins with kind and identifier; nights look for days.
	callDays = `CREATE TABLE call_days (
			kind       smallint NOT NULL,
			identifier text     COLLATE "C" NOT NULL,
			day        integer  NOT NULL, -- of UTC, counted from 1970-01-01
			part       bigint   NOT NULL, -- of 4096 sequence numbers, counted from 1
			first      bigint   NOT NULL, -- sequence of a call on that day
			PRIMARY KEY (kind, identifier, day, part)
		);
		CREATE INDEX call_days_day ON call_days (kind, day, identifier);
		ALTER TABLE heads ADD COLUMN call_day integer, ADD COLUMN calls_to bigint`

	// someRecords reads up to $3 records after the record ($1, $2).
	someRecords = `SELECT identifier, sequence, recorded_on, text FROM records
		WHERE kind = 3 AND (identifier, sequence) > ($1, $2) ORDER BY identifier, sequence LIMIT $3`

	insertDays = `INSERT INTO call_days (kind, identifier, day, part, first)
		SELECT 3, d.* FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[]) AS d ON CONFLICT DO NOTHING`
)

// indexing is the last record that the step has indexed.
type indexing struct {
	Block    string `json:"block"`
	Sequence int64  `json:"sequence"`
	Done     int64  `json:"done"`
	Total    int64  `json:"total"` // an estimate
}

// indexDays does a part of the step: it makes the table, or fills some of it.
func indexDays(ctx context.Context, tx pgx.Tx, at string, rows int) (migrate.Part, error) {
	var where indexing
	var err error
	if at != "" {
		err = json.Unmarshal([]byte(at), &where)
	}
	if err != nil {
		return migrate.Part{}, err
	}
	if at == "" {
		if err = script(ctx, tx, callDays); err == nil {
			err = tx.QueryRow(ctx, "SELECT greatest(reltuples::bigint, 0) FROM pg_class WHERE oid = 'records'::regclass").Scan(&where.Total)
		}
	} else {
		var n int
		if n, err = indexSome(ctx, tx, &where, rows); n < rows && err == nil {
			return migrate.Part{Done: where.Done, Total: where.Done, End: true}, nil
		}
	}
	if err != nil {
		return migrate.Part{}, err
	}
	text, err := json.Marshal(where)
	return migrate.Part{At: string(text), Done: where.Done, Total: max(where.Done, where.Total)}, err
}

// indexSome adds records to the index. It returns how many it read.
func indexSome(ctx context.Context, tx pgx.Tx, where *indexing, most int) (int, error) {
	rows, err := tx.Query(ctx, someRecords, where.Block, where.Sequence, most)
	if err != nil {
		return 0, err
	}
	type entry struct {
		block string
		day   oda.Day
		part  int64
	}
	var (
		last          entry
		blocks        []string
		days          []int32
		parts, firsts []int64
		recordedOn    oda.Instant
		text          []byte
		n             int
	)
	_, err = pgx.ForEachRow(rows, []any{&where.Block, &where.Sequence, &recordedOn, &text}, func() error {
		n++
		one := entry{where.Block, oda.CallDay(text).Or(recordedOn), engine.PartOf(where.Sequence)}
		if one != last {
			blocks, days, parts, firsts = append(blocks, one.block), append(days, int32(one.day)), append(parts, one.part), append(firsts, where.Sequence)
			last = one
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	where.Done += int64(n)
	_, err = tx.Exec(ctx, insertDays, blocks, days, parts, firsts)
	return n, err
}
