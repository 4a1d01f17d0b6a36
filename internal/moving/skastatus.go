package moving

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"oda"
)

// From release 4 on, ska-db-oda has a table of statuses for each kind, with a row for each
// time that one was set. The row with the highest id is the current one. Its previous
// status is what whoever set it believed, so it is not read.

// statusSuffix is how the name of a table of statuses ends, which begins as that of the kind.
const statusSuffix = "_status_history"

// refColumn is the column of a table of statuses that names the entity.
func refColumn(kind oda.Kind) string { return kind.Prefix() + "_ref" }

// findStatuses returns the name of the table of statuses of a kind, nil if there is none that
// can be read.
func (d *skaDatabase) findStatuses(ctx context.Context, kind oda.Kind) (pgx.Identifier, error) {
	name, columns, err := d.table(ctx, skaTables[kind]+statusSuffix)
	if name == nil || err != nil {
		return nil, err
	}
	for _, needed := range []string{"id", refColumn(kind), "version", "current_status"} {
		if !slices.Contains(columns, needed) {
			d.notes = append(d.notes, fmt.Sprintf("the table %s of %s has no column %s, so no statuses were read there", name[1], d.shown, needed))
			return nil, nil
		}
	}
	return name, nil
}

// noteOtherStatuses notes which tables may have statuses and are not read: those of later
// releases are not known.
func (d *skaDatabase) noteOtherStatuses(ctx context.Context) error {
	var known []string
	for _, kind := range oda.Kinds {
		known = append(known, skaTables[kind]+statusSuffix)
	}
	rows, err := d.conn.Query(ctx, `SELECT DISTINCT relname::text FROM pg_class
		WHERE relname LIKE 'tab\_oda\_%status%' AND relkind IN ('r', 'p', 'v', 'm') AND relname <> ALL ($1) ORDER BY 1`, known)
	if err != nil {
		return err
	}
	others, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range others {
		d.notes = append(d.notes, fmt.Sprintf("the table %s of %s is none that is known, so nothing was read there", name, d.shown))
	}
	return err
}

// saidOfLast returns the column of a query that has the statuses of an entity in the row of
// its last version, and what to join for it.
func (t *skaTable) saidOfLast() (column, join string) {
	if t.statuses == nil {
		return "NULL", ""
	}
	id := t.kind.IDField()
	return fmt.Sprintf("CASE WHEN lead(t.id) OVER (PARTITION BY t.%[1]s ORDER BY t.version, t.id) IS NULL THEN s.rows END", id),
		fmt.Sprintf("LEFT JOIN (SELECT h.%[2]s AS ref, json_agg(h ORDER BY h.id)::text AS rows FROM %[3]s h GROUP BY h.%[2]s) s ON s.ref = t.%[1]s",
			id, refColumn(t.kind), t.statuses.Sanitize())
}

// readStatuses reads the statuses of an entity. Those that are none are set aside.
func (d *skaDatabase) readStatuses(t skaTable, id string, rows *string, report *Report) (all []said, err error) {
	var texts []json.RawMessage
	if rows == nil {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(*rows), &texts); err != nil {
		return nil, fmt.Errorf("cannot read the statuses of %s: %w", id, err)
	}
	for _, text := range texts {
		s, err := d.status(t, id, text)
		if err == nil {
			all = append(all, s)
			continue
		}
		report.Read.Add(1)
		if err := report.setAside(s.aside(err.Error())); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// strayStatuses sets the statuses aside whose entity is not in its table.
func (d *skaDatabase) strayStatuses(ctx context.Context, tx pgx.Tx, t skaTable, report *Report) error {
	if t.statuses == nil {
		return nil
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT coalesce(h.%[2]s::text, ''), to_json(h)::text FROM %[3]s h
		WHERE NOT EXISTS (SELECT FROM %[4]s t WHERE t.%[1]s = h.%[2]s) ORDER BY h.id`,
		t.kind.IDField(), refColumn(t.kind), t.statuses.Sanitize(), t.name.Sanitize()))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		s, _ := d.status(t, id, []byte(text)) // whatever else is wrong with it
		report.Read.Add(1)
		if err := report.setAside(s.aside(fmt.Sprintf("the table %s has no such entity", t.name[1]))); err != nil {
			return err
		}
	}
	return rows.Err()
}

// status reads a row of a table of statuses, which is an object of its columns.
func (d *skaDatabase) status(t skaTable, id string, row []byte) (s said, err error) {
	s = said{Origin: Origin{File: d.shown + "/" + t.statuses[1]}, Status: oda.Status{Ref: oda.Ref{Kind: t.kind, ID: id}}, text: row}
	var columns struct {
		ID      int64   `json:"id"`
		Version *int64  `json:"version"`
		Status  *string `json:"current_status"`
	}
	if err := json.Unmarshal(row, &columns); err != nil {
		return s, errors.New("its columns cannot be read")
	}
	s.Line = columns.ID
	if columns.Version != nil {
		s.Version = *columns.Version
	}
	if columns.Status != nil {
		s.Text, s.Class = *columns.Status, oda.ClassOf(*columns.Status)
	}
	meta, err := columnsOf(string(row))
	if err != nil {
		return s, err
	}
	s.By, s.On = cmp.Or(meta.LastModifiedBy, meta.CreatedBy), oda.InstantOf(meta.LastModifiedOn)
	if meta.Has&oda.FieldLastModifiedOn == 0 {
		s.On = oda.InstantOf(meta.CreatedOn)
	}
	s.At = s.On
	switch {
	case s.Text == "":
		return s, errors.New("its column current_status is empty")
	case columns.Version == nil:
		return s, errors.New("its column version is null")
	case meta.Has&(oda.FieldLastModifiedOn|oda.FieldCreatedOn) == 0:
		return s, errors.New("neither its column last_modified_on nor its column created_on says when it was set")
	}
	return s, nil
}
