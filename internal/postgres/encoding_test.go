package postgres_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/suite"
)

// A database that does not take all characters would store something else than was
// sent, or refuse it.
func TestADatabaseThatIsNotInUTF8IsRefused(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	conn := connect(t, dsn)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII", "EUC_JP"} {
		name := pgx.Identifier{query[string](t, conn, "SELECT current_database()") + "_" + strings.ToLower(encoding)}.Sanitize()
		do(t, conn, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'")
		t.Cleanup(func() { do(t, connect(t, dsn), "DROP DATABASE "+name+" WITH (FORCE)") })
		other := strings.Replace(dsn, "/"+query[string](t, conn, "SELECT current_database()"), "/"+strings.Trim(name, `"`), 1)
		for how, open := range map[string]func() (*postgres.Store, error){
			"open": func() (*postgres.Store, error) {
				return postgres.Open(t.Context(), other, slog.New(slog.DiscardHandler))
			},
			"open existing": func() (*postgres.Store, error) {
				return postgres.OpenExisting(t.Context(), other, slog.New(slog.DiscardHandler))
			},
		} {
			s, err := open()
			if err == nil {
				_ = s.Close()
				t.Errorf("%s, %s: the archive was opened", encoding, how)
				continue
			}
			if text := err.Error(); !strings.Contains(text, "its encoding is "+encoding) || !strings.Contains(text, "createdb -T template0 -E UTF8") || strings.Contains(text, "\n") {
				t.Errorf("%s, %s: the error is %q", encoding, how, text)
			}
		}
		if n := query[int](t, connect(t, other), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); n > 0 {
			t.Errorf("%s: %d tables were made", encoding, n)
		}
	}
}

// What a role, a database or an address says about the encoding of clients does not
// matter.
func TestTheEncodingOfAConnectionIsSet(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	do(t, connect(t, dsn), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_encoding = ''LATIN1''', current_database()); END $$")
	s := open(t, with(t, dsn, "client_encoding", "LATIN1"))
	put := write(t, sbd("é-€"), `{"a":"é-€"}`)
	put.Creator = "Zoë €"
	mustPut(t, s, put)
	e := mustGet(t, s, sbd("é-€"))
	if e.Metadata.CreatedBy != "Zoë €" || !strings.Contains(suite.Render(t, e), "é-€") {
		t.Errorf("what was stored is read as %s", suite.Render(t, e))
	}
	if n := query[int](t, connect(t, with(t, dsn, "client_encoding", "UTF8")), "SELECT length(identifier) FROM heads"); n != len([]rune("é-€")) {
		t.Errorf("the identifier has %d characters in the database", n)
	}
	wantWhole(t, dsn)
}
