package app_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda"
	odaclient "oda/client"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// brokenRows are what may happen to the rows of a block, each to a block of its
// own. In statements, "BLOCK" stands for the rows of the block.
var brokenRows = []struct{ name, sqlite, postgres string }{
	{"first", `DELETE FROM versions WHERE BLOCK AND version = 1`, ""},
	{"middle", `DELETE FROM versions WHERE BLOCK AND version = 2`, ""},
	{"current", `DELETE FROM versions WHERE BLOCK AND version = 3`, ""},
	{"all", `DELETE FROM versions WHERE BLOCK`, ""},
	{"ahead", `UPDATE heads SET version = 9 WHERE BLOCK`, ""},
	{"odd-runs", `UPDATE versions SET runs = x'01' WHERE BLOCK AND version = 3`, `UPDATE versions SET runs = '{1}' WHERE BLOCK AND version = 3`},
	{"old-runs", `UPDATE versions SET runs = x'ff' WHERE BLOCK AND version = 1`, `UPDATE versions SET runs = '{1}' WHERE BLOCK AND version = 1`},
	{"later-runs", `UPDATE versions SET runs = x'0107' WHERE BLOCK AND version = 3`, `UPDATE versions SET runs = '{1,8}' WHERE BLOCK AND version = 3`},
	{"no-run", `UPDATE versions SET runs = x'0001' WHERE BLOCK AND version = 3`, `UPDATE versions SET runs = '{5,-3}' WHERE BLOCK AND version = 3`},
	{"null-run", `UPDATE versions SET runs = x'ffff' WHERE BLOCK AND version = 3`, `UPDATE versions SET runs = '{1,NULL}' WHERE BLOCK AND version = 3`},
	{"twice", `UPDATE versions SET runs = x'01010101' WHERE BLOCK AND version = 3`, `UPDATE versions SET runs = '{1,2,1,2}' WHERE BLOCK AND version = 3`},
	{"after", `UPDATE versions SET sequence_after = 100 WHERE BLOCK AND version = 3`, ""},
	{"before", `UPDATE versions SET sequence_after = -7 WHERE BLOCK AND version = 3`, ""},
	{"no-slots", `UPDATE versions SET slots = x'' WHERE BLOCK AND version = 3`, `UPDATE versions SET slots = '{}' WHERE BLOCK AND version = 3`},
	{"odd-slots", `UPDATE versions SET slots = x'01' WHERE BLOCK AND version = 3`, `UPDATE versions SET slots = '{1}' WHERE BLOCK AND version = 3`},
	{"null-slots", `UPDATE versions SET slots = x'ffff' WHERE BLOCK AND version = 3`, `UPDATE versions SET slots = '{1,NULL}' WHERE BLOCK AND version = 3`},
	{"far-slots", `UPDATE versions SET slots = x'01ffff03' WHERE BLOCK AND version = 3`, `UPDATE versions SET slots = '{1,1000000}' WHERE BLOCK AND version = 3`},
	{"moved-slots", `UPDATE versions SET slots = x'0101020203030404050506060707' WHERE BLOCK AND version = 3`, `UPDATE versions SET slots = '{1,1,2,2,3,3,4,4,5,5,6,6}' WHERE BLOCK AND version = 3`},
}

// onEdited runs a test on both engines, with an archive whose database can be edited
// once it has stopped. Use starts another one on the same database.
func onEdited(t *testing.T, test func(t *testing.T, engine string, a *env.Archive, use func(*app.Config), edit func(statements ...string))) {
	t.Parallel()
	for engine, open := range map[string]func(*testing.T) (string, func(statements ...string)){"sqlite": editedFile, "postgres": editedDatabase} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, edit := open(t)
			use := func(c *app.Config) { c.Database = database }
			test(t, engine, env.Start(t, use), use, edit)
		})
	}
}

// Whatever is missing or makes no sense in the rows of a block: an answer is the
// one that was given before, or it says that the block is damaged.
func TestNoAnswerIsWrongBecauseARowIsDamaged(t *testing.T) {
	onEdited(t, func(t *testing.T, engine string, a *env.Archive, use func(*app.Config), edit func(statements ...string)) {
		store := func(method, path, body string) string { return a.Must(method, path, body).Text() }
		paths, before, metadata := make([][]string, len(brokenRows)), make(map[string]string), make([]string, len(brokenRows))
		var statements []string
		for i, broken := range brokenRows {
			path := "/ebs/eb-" + broken.name
			night := time.Date(2026, 3, 1+2*i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) // no other block has calls in it
			call := `{"request": "here", "request_sent_at": "` + night + `T20:00:00Z"}`
			instants := []string{store("PUT", path, `{"name": "a", "request_responses": [`+call+`]}`)}
			for range 2 {
				store("POST", path+"/request_response", call)
				instants = append(instants, store("GET", path, ""))
				instants = append(instants, store("PUT", path+"?records=keep", `{"name": "a", "metadata": `+metadataOf(t, store("GET", path, ""))+`}`))
			}
			store("POST", path+"/request_response", call)
			metadata[i] = metadataOf(t, store("GET", path, ""))
			paths[i] = []string{
				path, path + "/versions", path + "/versions?limit=2", path + "/versions/1", path + "/versions/2", path + "/versions/3", path + "/diff", path + "/diff?from=1&to=2",
				path + "/request_responses", path + "/request_responses?after=1", path + "?at=2100-01-01", "/night?date=" + night,
			}
			for _, document := range instants {
				paths[i] = append(paths[i], path+"?at="+modifiedOn(t, document))
			}
			for _, p := range paths[i] {
				before[p] = store("GET", p, "")
			}
			statement := broken.sqlite
			if engine == "postgres" && broken.postgres != "" {
				statement = broken.postgres
			}
			rows := "kind = 3 AND identifier = 'eb-" + broken.name + "'"
			if engine == "sqlite" {
				rows = "entity = (SELECT entity FROM heads WHERE " + rows + ")"
			}
			statements = append(statements, strings.Replace(statement, "BLOCK", rows, 1))
		}
		must.Do(t, a.Stop())
		edit(statements...)

		a = env.Start(t, use)
		for i, broken := range brokenRows {
			damaged := 0
			for _, path := range paths[i] {
				reply := a.Do("GET", path, "")
				switch {
				case isDamaged(reply) && strings.Contains(reply.Text(), "eb-"+broken.name):
					damaged++
				case reply.Status != 200 || reply.Text() != before[path]:
					t.Errorf("%s: GET %s was answered\n%.500s\nand is answered %d\n%.500s", broken.name, path, before[path], reply.Status, reply.Text())
				}
			}
			if damaged == 0 {
				t.Errorf("%s: nothing is answered as damaged", broken.name)
			}
			path := "/ebs/eb-" + broken.name
			if reply := a.Do("GET", path, ""); !isDamaged(reply) {
				continue // the current version is whole
			}
			if strings.HasSuffix(broken.name, "slots") || broken.name == "ahead" {
				continue // a new version needs nothing of the slots; nobody can know of a head that is ahead
			}
			for _, body := range []string{path + "?records=keep\n{}", path + "\n" + `{"request_responses": [{"request": "here"}]}`} {
				path, document, _ := strings.Cut(body, "\n")
				document = strings.Replace(document, "{", `{"metadata": `+metadata[i]+strings.Repeat(", ", min(1, len(document)-2)), 1)
				reply := a.Do("PUT", path, document)
				if !isDamaged(reply) || !strings.Contains(reply.Text(), "Nothing was stored by this request.") || strings.Contains(reply.Text(), "ersion 4") {
					t.Errorf("%s: PUT %s is answered %d: %s", broken.name, path, reply.Status, reply.Text())
				}
			}
		}
	})
}

func isDamaged(reply *env.Reply) bool {
	return reply.Status == 500 && strings.Contains(reply.Text(), "urn:oda:problem:damaged")
}

func modifiedOn(t *testing.T, document string) string {
	t.Helper()
	var m struct {
		LastModifiedOn string `json:"last_modified_on"`
	}
	must.Do(t, json.Unmarshal([]byte(metadataOf(t, document)), &m))
	return m.LastModifiedOn
}

// editedFile names an archive on the embedded engine, and edits its rows.
func editedFile(t *testing.T) (string, func(statements ...string)) {
	path := t.TempDir() + "/archive.db"
	return "sqlite:" + path, func(statements ...string) {
		t.Helper()
		conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
		for _, statement := range statements {
			if err := sqlitex.ExecuteScript(conn, statement, nil); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
		must.Do(t, conn.Close())
	}
}

// editedDatabase does so on PostgreSQL.
func editedDatabase(t *testing.T) (string, func(statements ...string)) {
	dsn := env.Postgres(t)
	return dsn, func(statements ...string) {
		t.Helper()
		env.Exec(t, env.Connect(t, dsn), statements...)
	}
}

// A summary that cannot be read is damage that names the entity, and nothing else
// is kept from being read.
func TestADamagedSummaryNamesItsEntity(t *testing.T) {
	onEdited(t, func(t *testing.T, engine string, a *env.Archive, use func(*app.Config), edit func(statements ...string)) {
		const document = `{"name": "a galaxy", "telescope": "ska_mid", "request_responses": [{"request": "observe", "request_sent_at": "2026-03-01T20:00:00Z"}]}`
		for _, put := range [][2]string{
			{"/sbds/sbd-damaged", document},
			{"/sbds/sbd-whole", document},
			{"/ebs/eb-damaged", document},
			{"/prjs/prj-1", `{"obs_blocks": [{"sbd_ids": ["sbd-damaged"]}]}`},
		} {
			a.Must("PUT", put[0], put[1])
		}
		must.Do(t, a.Stop())
		if engine == "sqlite" { // as after a crash, before the index had it
			edit(`UPDATE catalogue SET summary = x'01' WHERE entity IN (SELECT entity FROM heads WHERE identifier LIKE '%-damaged');
				DELETE FROM terms WHERE rowid > 0; UPDATE state SET indexed_entity = 0`)
		} else {
			edit(`UPDATE catalogue SET summary = '\x01' WHERE identifier LIKE '%-damaged'`)
		}
		a = env.Start(t, use)
		wantPassable(t, a, "/sbds/search?limit=10", "sbd-whole")
		for _, path := range []string{"/sbds/search?sort=id", "/sbds/sbd-damaged/provenance", "/export?prj_id=prj-1"} {
			if reply := a.Do("GET", path, ""); !isDamaged(reply) || !strings.Contains(reply.Text(), "SBDefinition sbd-damaged") {
				t.Errorf("GET %s is answered %d: %s", path, reply.Status, reply.Text())
			}
		}
		for _, path := range []string{"/night?date=2026-03-01", "/night?date=2026-03-01&telescope=ska_mid"} {
			if reply := a.Do("GET", path, ""); !isDamaged(reply) || !strings.Contains(reply.Text(), "ExecutionBlock eb-damaged") {
				t.Errorf("GET %s is answered %d: %s", path, reply.Status, reply.Text())
			}
		}
		for _, path := range []string{"/sbds/sbd-damaged", "/ebs/eb-damaged", "/sbds/sbd-whole", "/sbds/search?q=whole"} {
			a.Must("GET", path, "")
		}
	})
}

// A page of the file that cannot be read is damage of the entities that are on it.
func TestADamagedPageNamesTheEntityThatIsAskedFor(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/archive.db"
	use := func(c *app.Config) { c.Database = "sqlite:" + path }
	a := env.Start(t, use)
	for i := range 40 {
		note := strings.Repeat("x", 2000)
		if i == 20 {
			note = "in the middle of all" + note
		}
		a.Must("PUT", fmt.Sprintf("/sbds/sbd-%d", i), `{"note": "`+note+`"}`)
	}
	must.Do(t, a.Stop())
	content := must.Get(os.ReadFile(path))(t)
	size := int(binary.BigEndian.Uint16(content[16:]))
	at := bytes.Index(content, []byte("in the middle of all")) / size * size
	copy(content[at:], bytes.Repeat([]byte{0xff}, 100))
	must.Do(t, os.WriteFile(path, content, 0o640))
	a = env.Start(t, use)
	if reply := a.Do("GET", "/sbds/sbd-20", ""); !isDamaged(reply) || !strings.Contains(reply.Text(), "SBDefinition sbd-20") {
		t.Errorf("it is answered %d: %s", reply.Status, reply.Text())
	}
}

// A stream that has begun cannot say why it ends, so a follower that comes back to
// the same place must be told.
func TestAFollowerIsToldThatTheLogIsDamaged(t *testing.T) {
	onEdited(t, func(t *testing.T, engine string, a *env.Archive, use func(*app.Config), edit func(statements ...string)) {
		for _, path := range []string{"/sbds/sbd-1", "/prjs/prj-lost", "/sbds/sbd-2"} {
			a.Must("PUT", path, "{}")
			a.Do("GET", "/changes", "") // PostgreSQL numbers what is stored, one by one
		}
		must.Do(t, a.Stop())
		edit("DELETE FROM " + map[string]string{"sqlite": "versions WHERE position = 2", "postgres": "changes WHERE names[1] = 'prj-lost'"}[engine])

		c := must.Get(odaclient.New(env.Start(t, use).URL()))(t)
		defer c.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for kind, want := range map[oda.Kind][]oda.Position{oda.SBDefinition: {1}, oda.Project: nil} {
			var seen []oda.Position
			for change, err := range c.Follow(ctx, 0, oda.ChangeFilter{Kinds: []oda.Kind{kind}}) {
				if err == nil {
					seen = append(seen, change.Position)
				} else if oda.CodeOf(err) != oda.DamagedText {
					t.Errorf("the follower of changes of a %v ends with %v", kind, err)
				}
			}
			if !slices.Equal(seen, want) {
				t.Errorf("the follower of changes of a %v sees the positions %v", kind, seen)
			}
		}
	})
}
