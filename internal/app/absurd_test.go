package app_test

import (
	"fmt"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/app"
	"oda/internal/engine/audit"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// unverified are columns that "oda verify" does not judge, and why.
var unverified = map[string]string{
	"heads.create_key": "an entity may have been created without one",
	"heads.call_day":   "not compared with the index of days yet; a wrong one keeps later records of that day out of it",
	"heads.calls_to":   "as call_day",
	"rounds.gaps":      "numbers that may still come, or never",
	"rounds.since":     "of the cluster that it was written in, from which the database may have been restored",
}

// constrained are columns that the database keeps from absurd values.
var constrained = map[string]bool{
	"sqlite state.one": true, "postgres heads.last_modified_on": true, "postgres heads.listed_on": true, "postgres counts.shard": true,
}

// No content of the database keeps it from being verified: whatever a column
// holds, the place is named.
func TestAbsurdValuesAreFoundInEveryColumn(t *testing.T) {
	t.Parallel()
	for engine, columns := range map[string]func(t *testing.T, healthy string) []absurd{"sqlite": absurdFile, "postgres": absurdDatabase} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			healthy := healthyArchive(t, engine)
			damager := map[string]func(*testing.T, string) func(damage) string{"sqlite": sqliteDamager, "postgres": postgresDamager}[engine]
			hurt := damager(t, healthy)
			all := columns(t, healthy)
			if len(all) < 50 {
				t.Fatalf("only %d columns are known", len(all))
			}
			for i, one := range all {
				if i > 0 && one.table == all[i-1].table && one.column == all[i-1].column && !env.InProof() {
					continue // "make proof" takes every value, and the others the first
				}
				if constrained[engine+" "+one.table+"."+one.column] {
					continue
				}
				statement := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", one.table, one.column, one.value, one.row)
				report := audit.NewReport(10, func(audit.Fault) {})
				if err := app.Verify(t.Context(), hurt(damage{name: statement, sqlite: statement}), report); err != nil {
					t.Errorf("%s: %v", statement, err)
				} else if report.Faulty.Load() == 0 && unverified[one.table+"."+one.column] == "" {
					t.Errorf("%s: no fault is found", statement)
				}
			}
		})
	}
}

// absurd is a value that a column of a row cannot have.
type absurd struct{ table, column, value, row string }

func absurdFile(t *testing.T, healthy string) (all []absurd) {
	conn := must.Get(sqlite.OpenConn(strings.TrimPrefix(healthy, "sqlite:"), sqlite.OpenReadOnly))(t)
	defer conn.Close()
	err := sqlitex.ExecuteTransient(conn, `SELECT m.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0 FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'terms%' AND m.name NOT IN ('migrations', 'unindexed')`, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		values := map[string][]string{"INTEGER": {"-7", "12345"}, "TEXT": {"'absurd'"}, "BLOB": {"x''", "x'00ff'"}}[row.ColumnText(2)]
		if row.ColumnBool(3) {
			values = append(values, "NULL")
		}
		one := absurd{table: row.ColumnText(0), column: row.ColumnText(1)}
		key := "rowid"
		switch one.table {
		case "call_days":
			key = "day, entity, part"
		case "failed_calls", "long_calls":
			key = "at, identifier, sequence"
		case "failed_hours":
			key = "what, value, hour"
		}
		for _, one.value = range values {
			one.row = fmt.Sprintf("(%s) IN (SELECT %s FROM %s WHERE %s IS NOT NULL AND %[4]s IS NOT %[5]s LIMIT 1)", key, key, one.table, one.column, one.value)
			all = append(all, one)
		}
		return nil
	}})
	must.Do(t, err)
	return all
}

func absurdDatabase(t *testing.T, healthy string) (all []absurd) {
	conn := env.Connect(t, healthy)
	rows, err := conn.Query(t.Context(), `SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name IN ('heads', 'versions', 'records', 'counts', 'creations', 'creation_keys', 'catalogue', 'call_days', 'failed_calls', 'long_calls', 'changes', 'rounds', 'log_end')`)
	must.Do(t, err)
	defer rows.Close()
	for rows.Next() {
		var one absurd
		var kind string
		var nullable bool
		must.Do(t, rows.Scan(&one.table, &one.column, &kind, &nullable))
		values := map[string][]string{
			"smallint": {"-7", "12345"}, "integer": {"-7", "12345"}, "bigint": {"-7", "12345"}, "text": {"'absurd'"}, "bytea": {`''`, `'\x00ff'`},
			"ARRAY": {"'{}'", "'{7}'", "'{1,NULL}'", "'{{1,2},{3,4}}'"}, "tsvector": {"''"}, "xid8": {"'1'"},
		}[kind]
		if nullable {
			values = append(values, "NULL")
		}
		for _, one.value = range values {
			one.row = fmt.Sprintf("ctid = (SELECT ctid FROM %s WHERE %s IS NOT NULL AND %[2]s IS DISTINCT FROM %[3]s LIMIT 1)", one.table, one.column, one.value)
			all = append(all, one)
		}
	}
	must.Do(t, rows.Err())
	return all
}
