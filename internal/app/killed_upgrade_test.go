package app_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
)

// more is how many records the block eb-long of an earlier archive gets, so that
// its upgrade takes a while.
const more = 200_000

// Statements with which earlier programs left the block with so many more records.
var longer = map[string]string{
	"sqlite": fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d)
			INSERT INTO records (position, entity, sequence, version, recorded_by, recorded_on, text)
			SELECT (SELECT last_position FROM state) + i, entity, last_sequence + i, version, 'ada', last_modified_on + i, CAST('{"request": "more", "i": ' || i || '}' AS BLOB)
			FROM heads, n WHERE identifier = 'eb-long';
		UPDATE heads SET last_sequence = last_sequence + %[1]d, last_modified_on = last_modified_on + %[1]d, last_modified_by = 'ada' WHERE identifier = 'eb-long';
		UPDATE state SET last_position = last_position + %[1]d`, more),
	"postgres": fmt.Sprintf(`INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text)
			SELECT 3, identifier, last_sequence + i, version, 'ada', last_modified_on + i, convert_to('{"request": "more", "i": ' || i || '}', 'UTF8')
			FROM heads, generate_series(1, %[1]d) i WHERE kind = 3 AND identifier = 'eb-long';
		UPDATE heads SET last_sequence = last_sequence + %[1]d, last_modified_on = last_modified_on + %[1]d, last_modified_by = 'ada',
			listed_on = last_modified_on + %[1]d WHERE kind = 3 AND identifier = 'eb-long'`, more),
}

// A server that is killed in the middle of a schema step lives and is not ready
// until then, and the next one goes on where it was. Nothing is lost.
func TestAnUpgradeThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	for engine, statements := range longer {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			old := env.Fixtures(t, engine)[0]
			database := env.Restore(t, old)
			if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
				conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
				if err != nil {
					t.Fatal(err)
				}
				if err := sqlitex.ExecuteScript(conn, statements, nil); err != nil {
					t.Fatal(err)
				}
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				env.Exec(t, env.Connect(t, database), statements)
			}
			some := regexp.MustCompile(`schema step \d+ of \d+ \([^)]*\), [1-9]\d* of `)
			p := env.OdaOpening(t, "serve", "--db", database)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				status, text := send(t, "GET", p.URL, "")
				if some.MatchString(text) {
					break
				}
				if status != 503 || time.Now().After(deadline) {
					t.Fatalf("it was to be killed in the middle of a step, and readyz answers %d %s", status, text)
				}
			}
			must(t, "GET", strings.TrimSuffix(p.URL, "/readyz")+"/livez", "")
			p.Kill()
			p = env.Oda(t, "serve", "--db", database)
			if !regexp.MustCompile(`"msg":"schema step","number":\d+,"of":\d+,"name":"[^"]*","done":[1-9]`).MatchString(p.Log()) {
				t.Errorf("it did not go on where it was:\n%s", p.Log())
			}
			for _, s := range old.Current() {
				if s.Path == "/ebs/eb-long" {
					continue
				}
				if text := must(t, "GET", p.URL+s.Path, ""); text != s.Text {
					t.Errorf("%s is not what it was", s.Path)
				}
			}
			if code := p.Stop(); code != 0 {
				t.Errorf("it ended with %d", code)
			}
			wantWhole(t, database)
		})
	}
}
