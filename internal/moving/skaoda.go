package moving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/rawjson"
)

// The database of SKA's ska-db-oda has a table for each kind, with a row for each
// version. Its columns have changed over the years: there are more of them, and times may
// have a zone. So all columns but the document are read as JSON. Nothing in the database
// keeps two rows from having the same version of an entity; the one with the higher id
// counts.
var skaTables = map[oda.Kind]string{
	oda.SBDefinition: "tab_oda_sbd", oda.SBInstance: "tab_oda_sbi", oda.ExecutionBlock: "tab_oda_eb", oda.Project: "tab_oda_prj",
}

// skaKinds are the kinds that ska-db-oda has.
var skaKinds = slices.DeleteFunc(slices.Clone(oda.Kinds[:]), func(kind oda.Kind) bool { return skaTables[kind] == "" })

// skaTable is a table as a database has it.
type skaTable struct {
	kind oda.Kind
	name pgx.Identifier
	meta []string // the metaColumns that it has

	statuses pgx.Identifier // its table of statuses; nil: there is none
}

// metaColumns are the columns that say what the metadata of a document does.
var metaColumns = []string{"created_by", "created_on", "last_modified_by", "last_modified_on"}

// skaDatabase is an open database of ska-db-oda.
type skaDatabase struct {
	conn    *pgx.Conn
	shown   string // its address without a password
	tables  []skaTable
	missing []string // names of tables
	notes   []string // what else a person should know
}

// openSKA connects to the database, and finds its tables.
func openSKA(ctx context.Context, address string) (*skaDatabase, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	config, err := pgx.ParseConfig(strings.ToLower(scheme) + "://" + rest)
	if err != nil {
		return nil, errors.New("the address of the PostgreSQL database is not valid; write it as postgres://USER@HOST/NAME")
	}
	config.RuntimeParams["application_name"] = "oda import"
	config.RuntimeParams["client_encoding"] = "UTF8" // whatever the database has
	config.RuntimeParams["timezone"] = "UTC"         // in which older databases keep times
	config.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without the address
		}
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n") // one for each try
		return nil, fmt.Errorf("cannot connect to the PostgreSQL database %s on %s: %s", config.Database, config.Host, lines[len(lines)-1])
	}
	d := &skaDatabase{conn: conn, shown: (&url.URL{Scheme: "postgres", Host: config.Host, Path: "/" + config.Database}).String()}
	if err := d.find(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *skaDatabase) close() { _ = d.conn.Close(context.Background()) }

// find finds the tables. One that the search path has goes before others.
func (d *skaDatabase) find(ctx context.Context) error {
	for _, kind := range skaKinds {
		name, columns, err := d.table(ctx, skaTables[kind])
		if err != nil {
			return err
		}
		if name == nil {
			d.missing = append(d.missing, skaTables[kind])
			continue
		}
		for _, needed := range []string{"id", "info", kind.IDField(), "version"} {
			if !slices.Contains(columns, needed) {
				return fmt.Errorf("the table %s of %s is not one of ska-db-oda: it lacks the column %s", skaTables[kind], d.shown, needed)
			}
		}
		meta := slices.DeleteFunc(slices.Clone(metaColumns), func(column string) bool { return !slices.Contains(columns, column) })
		statuses, err := d.findStatuses(ctx, kind)
		if err != nil {
			return err
		}
		d.tables = append(d.tables, skaTable{kind, name, meta, statuses})
	}
	if len(d.tables) == 0 {
		return fmt.Errorf("%s has none of the tables tab_oda_sbd, tab_oda_sbi, tab_oda_eb and tab_oda_prj, so it is not a database of ska-db-oda; if it is an archive of oda, make an export of it with \"oda export\", and import that", d.shown)
	}
	return d.noteOtherStatuses(ctx)
}

// table returns the full name of a table, nil if there is none, and its columns.
func (d *skaDatabase) table(ctx context.Context, name string) (full pgx.Identifier, columns []string, err error) {
	var schema string
	err = d.conn.QueryRow(ctx, `SELECT n.nspname, (SELECT coalesce(array_agg(a.attname::text), '{}') FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY pg_table_is_visible(c.oid) DESC, n.nspname LIMIT 1`,
		name).Scan(&schema, &columns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot read the tables of %s: %w", d.shown, err)
	}
	return pgx.Identifier{schema, name}, columns, nil
}

// histories calls emit for each entity, as one snapshot shows the database.
func (d *skaDatabase) histories(ctx context.Context, maxDocument int64, report *Report, emit func(*history) error) error {
	if len(d.missing) > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%s has no table %s, so nothing was read there", d.shown, strings.Join(d.missing, " and no table ")))
	}
	if report.Note != nil {
		for _, note := range d.notes {
			report.Note(note)
		}
	}
	return pgx.BeginTxFunc(ctx, d.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, t := range d.tables {
			for _, name := range []pgx.Identifier{t.name, t.statuses} {
				var n int64
				if name == nil {
					continue
				}
				if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+name.Sanitize()).Scan(&n); err != nil {
					return err
				}
				report.Total.Add(n)
			}
		}
		for _, t := range d.tables {
			if err := d.read(ctx, tx, t, maxDocument, report, emit); err != nil {
				return err
			}
			if err := d.strayStatuses(ctx, tx, t, report); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads a table. What is too large stays in the database.
func (d *skaDatabase) read(ctx context.Context, tx pgx.Tx, t skaTable, maxDocument int64, report *Report, emit func(*history) error) error {
	var meta []string
	for _, column := range t.meta {
		meta = append(meta, fmt.Sprintf("'%[1]s', t.%[1]s", column))
	}
	said, statuses := t.saidOfLast()
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT t.id::bigint, t.%[1]s::text, t.version::bigint, octet_length(i.text) > $1::bigint, CASE WHEN octet_length(i.text) <= $1::bigint THEN i.text END,
			json_build_object(%[3]s)::text, %[4]s
		FROM %[2]s t %[5]s, LATERAL (SELECT t.info::text AS text OFFSET 0) i ORDER BY t.%[1]s, t.version, t.id`,
		t.kind.IDField(), t.name.Sanitize(), strings.Join(meta, ", "), said, statuses), maxDocument)
	if err != nil {
		return err
	}
	defer rows.Close()
	h := &history{}
	for rows.Next() {
		f, statuses, whole, err := d.row(rows, t, maxDocument)
		if err != nil {
			return err
		}
		if h.ID != f.ID {
			if err := handOver(h, report, emit); err != nil {
				return err
			}
			h = &history{Ref: oda.Ref{Kind: t.kind, ID: f.ID}}
		}
		if h.said, err = d.readStatuses(t, f.ID, statuses, report); err != nil {
			return err
		}
		if whole != nil {
			report.Read.Add(1)
			if err := report.setAside(f.aside(whole.Error())); err != nil {
				return err
			}
			continue
		}
		h.versions = append(h.versions, f)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return handOver(h, report, emit)
}

// handOver hands an entity over, unless none of its versions can be read.
func handOver(h *history, report *Report, emit func(*history) error) error {
	if len(h.versions) > 0 {
		return emit(h)
	}
	for i := range h.said {
		report.Read.Add(1)
		if err := report.setAside(h.said[i].aside(notThere(h.said[i].Version))); err != nil {
			return err
		}
	}
	return nil
}

// row reads a row. Whole says why it is not a document that can be imported. The last row
// of an entity has its statuses.
func (d *skaDatabase) row(rows pgx.Rows, t skaTable, maxDocument int64) (f found, statuses *string, whole, err error) {
	var row int64
	var id, info *string
	var version *int64
	var large *bool
	var columns string
	if err := rows.Scan(&row, &id, &version, &large, &info, &columns, &statuses); err != nil {
		return f, nil, nil, err
	}
	f = found{Origin: Origin{File: d.shown + "/" + t.name[1], Line: row}, Ref: oda.Ref{Kind: t.kind}}
	if info != nil {
		f.text = []byte(*info)
	}
	if id != nil {
		f.ID = *id
	}
	if version != nil {
		f.version = *version
	}
	switch {
	case large != nil && *large:
		whole = tooLarge(maxDocument)
	case info == nil:
		whole = errors.New("its column info is null")
	case id == nil:
		whole = fmt.Errorf("its column %s is null", t.kind.IDField())
	case version == nil:
		whole = errors.New("its column version is null")
	default:
		if f.meta, whole = columnsOf(columns); whole == nil {
			whole = identify(&f)
		}
		if whole == nil {
			f.text = corrected(f.text, f.version)
		}
	}
	return f, statuses, whole, nil
}

// corrected returns a document without what its columns say better: a version that is a
// string, and users without a name. Other documents are returned as they are.
func corrected(text []byte, version int64) []byte {
	wrong := false
	inMetadata := func(key, value []byte) []byte {
		switch string(key) {
		case "version":
			if value[0] == '"' {
				wrong = true
				return strconv.AppendInt(nil, version, 10)
			}
		case "created_by", "last_modified_by":
			if string(value) == `""` {
				wrong = true
				return []byte("null")
			}
		}
		return value
	}
	for key, metadata := range rawjson.Members(text) {
		if string(key) != "metadata" || metadata[0] != '{' {
			continue
		}
		if metadata = rewritten(metadata, inMetadata); wrong {
			return rewritten(text, func(key, value []byte) []byte {
				if string(key) == "metadata" {
					return metadata
				}
				return value
			})
		}
	}
	return text
}

// rewritten returns an object with other values.
func rewritten(object []byte, value func(key, value []byte) []byte) []byte {
	out := []byte{'{'}
	for key, old := range rawjson.Members(object) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendQuoted(out, string(key)), ':')
		out = append(out, value(key, old)...)
	}
	return append(out, '}')
}

// columnsOf reads what the columns of a row say about a version.
func columnsOf(columns string) (*oda.Received, error) {
	var row struct {
		CreatedBy      *string `json:"created_by"`
		CreatedOn      *string `json:"created_on"`
		LastModifiedBy *string `json:"last_modified_by"`
		LastModifiedOn *string `json:"last_modified_on"`
	}
	if err := json.Unmarshal([]byte(columns), &row); err != nil {
		return nil, errors.New("its columns cannot be read")
	}
	var r oda.Received
	if row.CreatedBy != nil && *row.CreatedBy != "" {
		r.CreatedBy, r.Has = *row.CreatedBy, r.Has|oda.FieldCreatedBy
	}
	if row.LastModifiedBy != nil && *row.LastModifiedBy != "" {
		r.LastModifiedBy, r.Has = *row.LastModifiedBy, r.Has|oda.FieldLastModifiedBy
	}
	var err error
	if row.CreatedOn != nil {
		if r.CreatedOn, err = oda.ParseTime(*row.CreatedOn); err != nil {
			return nil, fmt.Errorf("its column created_on %w", err)
		}
		r.Has |= oda.FieldCreatedOn
	}
	if row.LastModifiedOn != nil {
		if r.LastModifiedOn, err = oda.ParseTime(*row.LastModifiedOn); err != nil {
			return nil, fmt.Errorf("its column last_modified_on %w", err)
		}
		r.Has |= oda.FieldLastModifiedOn
	}
	return &r, nil
}

// isPostgres reports whether a source is a PostgreSQL database.
func isPostgres(source string) bool { return isAt(source, "postgres", "postgresql") }
