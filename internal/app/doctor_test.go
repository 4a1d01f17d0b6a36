package app_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// related stores entities that refer to each other, and all to something that is there.
func related(t *testing.T, url string) {
	t.Helper()
	answered(t, "PUT", url+"/prjs/prj-1", `{"obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["sbd-1"]}]}`)
	answered(t, "PUT", url+"/sbds/sbd-1", `{"ob_ref":"ob-1"}`)
	answered(t, "PUT", url+"/sbis/sbi-1", `{"sbd_ref":"sbd-1","sbd_version":1}`)
	answered(t, "PUT", url+"/ebs/eb-1", `{"sbi_ref":"sbi-1","request_responses":[{"request":"observe"}]}`)
}

// dangling stores entities with references that lead nowhere.
func dangling(t *testing.T, url string) {
	t.Helper()
	answered(t, "PUT", url+"/ebs/eb-2", `{"sbi_ref":"sbi-lost"}`)
	answered(t, "PUT", url+"/sbds/sbd-2", `{"ob_ref":"ob-lost"}`)
	answered(t, "PUT", url+"/sbis/sbi-2", `{"sbd_ref":"sbd-1","sbd_version":7}`)
	answered(t, "PUT", url+"/sbis/sbi-3", `{"sbd_ref":"sbd-\u0000"}`) // PostgreSQL has no such text
}

// found are the findings for these references.
var found = []string{
	"warning: references: ExecutionBlock eb-2: its sbi_ref names SBInstance sbi-lost, which is not in the archive",
	"warning: references: SBDefinition sbd-2: its ob_ref names Project ob-lost, which is not in the archive",
	"warning: references: SBInstance sbi-2: its sbd_ref names version 7 of SBDefinition sbd-1, which has only 1",
	"warning: references: SBInstance sbi-3: its sbd_ref names SBDefinition \"sbd-\\x00\", which is not in the archive",
	"    what to do: correct the reference, or store what it names\n",
}

// finds demands that "oda doctor" exits with a code and prints these lines.
func finds(t *testing.T, name string, o ran, code int, lines ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("%s: oda doctor exits with %d, want %d:\n%s%s", name, o.code, code, o.out, o.err)
	}
	for _, line := range lines {
		if !strings.Contains(o.out, line) {
			t.Errorf("%s: oda doctor does not say\n%s\nbut\n%s%s", name, line, o.out, o.err)
		}
	}
}

// Each thing that can be wrong with an archive in a file is found, and named with what
// to do.
func TestTheDoctorFindsWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "made")
	p := env.Oda(t, "serve", "--db", "sqlite:"+filepath.Join(folder, "archive.db"))
	related(t, p.URL)
	p.MustStop()
	content := must.Get(os.ReadFile(filepath.Join(folder, "archive.db")))(t)
	check := func(err error) { t.Helper(); must.Do(t, err) }
	sql := func(statement string) func(path string) {
		return func(path string) {
			conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
			check(err)
			check(errors.Join(sqlitex.ExecuteScript(conn, statement, nil), conn.Close()))
		}
	}
	mode := func(suffix string, mode os.FileMode) func(string) {
		return func(path string) {
			if suffix == "/" {
				path, suffix = filepath.Dir(path), ""
			}
			check(os.Chmod(path+suffix, mode))
		}
	}
	touch := func(name string) func(string) {
		return func(path string) { check(os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o600)) }
	}
	for _, ill := range []struct {
		name string
		make func(path string)
		code int
		find []string
	}{
		{"nothing", func(string) {}, 0, []string{"nothing is wrong; 0 warnings\n"}},
		{
			"a text is edited", sql(`UPDATE versions SET text = CAST(replace(CAST(text AS TEXT), 'ob-1', 'ob-2') AS BLOB) WHERE position = 2`), 1,
			[]string{"wrong: damage: SBDefinition sbd-1, version 1: ", "(text)\n", "    what to do: keep a copy of the archive as it is"},
		},
		{"the file is cut off", func(path string) { check(os.Truncate(path, 8192)) }, 1, []string{"wrong: damage: the file: SQLite cannot open it", "what to do: keep a copy of the archive as it is"}},
		{"half of the file is lost", func(path string) { check(os.Truncate(path, int64(len(content)/2))) }, 1, []string{"wrong: damage: the file: "}},
		{"a version is lost", sql(`DELETE FROM versions WHERE position = 2`), 1, []string{"wrong: damage: SBDefinition sbd-1: version 1 is missing (gap)"}},
		{"a telescope is edited", sql(`UPDATE heads SET telescope = 'ska_low' WHERE entity = 2`), 1, []string{"wrong: damage: SBDefinition sbd-1: its head says that its telescope is"}},
		{"a summary is lost", sql(`DELETE FROM catalogue WHERE entity = 2`), 1, []string{"searches do not know it (index)", "what to do: documents and records are whole"}},
		{"terms are lost", sql(`DELETE FROM terms WHERE rowid = 2`), 1, []string{"wrong: damage: SBDefinition sbd-1: the index of words and references"}},
		{
			"the clock went back", sql(`UPDATE versions SET stored_on = stored_on - 3600000000 WHERE position = 3`), 1,
			[]string{"warning: clock: position 3 of the log: the clock of the archive went back from ", "what to do: check that the clock of the machine is synchronized with NTP"},
		},
		{"the clock was ahead", sql(`UPDATE versions SET stored_on = stored_on + 86400000000`), 1, []string{"warning: clock: the end of the log: something was stored at ", "in the future"}},
		{"an older schema", sql(`DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)`), 1, []string{"wrong: schema: ", "older than this program"}},
		{"other tables", sql(`UPDATE migrations SET checksum = 'x'`), 1, []string{"wrong: schema: ", "made by another oda"}},
		{"a newer schema", sql(`INSERT INTO migrations SELECT number + 1, name, checksum, schema_checksum FROM migrations ORDER BY number DESC LIMIT 1`), 1, []string{"wrong: schema: ", "newer than this program"}},
		{"everybody can write", mode("", 0o666), 1, []string{"wrong: permissions: ", "archive.db: everybody on this machine can change it (0666)", "what to do: chmod o-rw "}},
		{"everybody can write to the folder", mode("/", 0o777), 1, []string{"wrong: permissions: ", "everybody on this machine can remove and replace the archive"}},
		{"everybody can read", func(path string) { mode("", 0o644)(path); mode("/", 0o755)(path) }, 0, []string{"warning: permissions: ", "everybody on this machine can read it", "nothing is wrong; 1 warning\n"}},
		{"a hard link", func(path string) { check(os.Link(path, path+".other")) }, 1, []string{"wrong: permissions: ", "several names"}},
		{"a start was interrupted", touch("archive.db.new"), 0, []string{"warning: leftovers: ", "archive.db.new: left by a first start", "what to do: remove it"}},
		{"a restore was interrupted", touch("archive.db.restoring"), 0, []string{"archive.db.restoring: left by \"oda restore\""}},
		{"a probe was interrupted", touch("archive.db.probe"), 0, []string{"archive.db.probe: left by a server that was killed"}},
		{"a backup was interrupted", touch("monday.backup.part"), 0, []string{"monday.backup.part: left by a backup or export"}},
	} {
		path := filepath.Join(t.TempDir(), "archive.db")
		check(os.Chmod(filepath.Dir(path), 0o750))
		check(os.WriteFile(path, content, 0o640))
		ill.make(path)
		before := listing(t, filepath.Dir(path))
		finds(t, ill.name, run(t, "doctor", "--db", "sqlite:"+path), ill.code, ill.find...)
		if after := listing(t, filepath.Dir(path)); after != before {
			t.Errorf("%s: oda doctor has changed the folder from\n%s\nto\n%s", ill.name, before, after)
		}
	}

	path := filepath.Join(t.TempDir(), "archive.db")
	check(os.Chmod(filepath.Dir(path), 0o750))
	check(os.WriteFile(path, content, 0o640))
	p = env.Oda(t, "serve", "--db", "sqlite:"+path)
	dangling(t, p.URL)
	fails(t, run(t, "doctor", "--db", "sqlite:"+path), 2, "another oda has it open", "leave --db out")
	p.MustStop()
	finds(t, "dangling references", run(t, "doctor", "--db", "sqlite:"+path), 0, append(found, "nothing is wrong; 4 warnings\n")...)
	finds(t, "strictly", run(t, "doctor", "--db", "sqlite:"+path, "--strict"), 1)
	finds(t, "as JSON", run(t, "doctor", "--db", "sqlite:"+path, "-o", "json"), 0, `"warnings":4,"wrong":0}`, `{"check":"references","wrong":false,"place":"ExecutionBlock eb-2",`)
	fails(t, run(t, "doctor", "--db", "sqlite:"+path+".nothing"), 2, "there is no such file")

	settings := filepath.Join(t.TempDir(), "oda.yaml")
	check(os.WriteFile(settings, []byte("listen: nowhere\nlog-level: loud\n"), 0o600))
	for _, flag := range []string{"--settings", "--config"} { // the latter is what "oda serve" calls it
		finds(t, "settings", run(t, "doctor", "--db", "sqlite:"+path, flag, settings), 1, "wrong: settings: "+settings+": ", "log-level", "cannot listen on nowhere", "what to do: correct it")
	}
	spool := filepath.Join(t.TempDir(), "spool", "eb-1.00000000000000aa")
	check(os.MkdirAll(spool, 0o700))
	check(os.WriteFile(filepath.Join(spool, "block.json"), []byte(`{"spool":9}`), 0o600))
	finds(t, "a spool that cannot be read", run(t, "doctor", "--db", "sqlite:"+path, "--spool", filepath.Dir(spool)), 1, "wrong: spool: "+spool)
}

// listing returns names, modes, sizes and times of the files in a folder.
func listing(t *testing.T, folder string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(folder))(t)
	var lines []string
	for _, entry := range entries {
		info := must.Get(entry.Info())(t)
		lines = append(lines, fmt.Sprint(info.Name(), info.Mode(), info.Size(), info.ModTime()))
	}
	return strings.Join(lines, "\n")
}

// A file that belongs to another user, and a disk with little room.
func TestTheDoctorFindsWhatOnlyRootCanMake(t *testing.T) {
	t.Parallel()
	small := env.SmallDisk(t, 64<<20)
	path := filepath.Join(small, "archive.db")
	p := env.Oda(t, "serve", "--db", "sqlite:"+path)
	finds(t, "little room at the server", run(t, "doctor", "--url", p.URL), 1, "wrong: space: "+p.URL+": its disk has ", "what to do: make room", "not checked: damage, references")
	p.Kill() // so that its log is left
	<-p.Ended()
	must.Do(t, os.Chown(path+"-wal", 12345, 12345))
	finds(t, "little room", run(t, "doctor", "--db", "sqlite:"+path), 1, "wrong: space: "+small+": its disk has ", "wrong: permissions: "+path+"-wal: it belongs to user 12345")
}

// Records that wait in a spool, and a server that does well.
func TestTheDoctorAsksTheServer(t *testing.T) {
	t.Parallel()
	p := env.Oda(t, "serve")
	finds(t, "nothing", run(t, "doctor", "--url", p.URL), 0, "not checked: damage", "nothing is wrong; 0 warnings\n")
	apart := env.Oda(t, "serve", "--admin-listen", "127.0.0.1:0")
	finds(t, "metrics elsewhere", run(t, "doctor", "--url", apart.URL), 0, "its metrics have an address of their own")
	fails(t, run(t, "doctor", "--url", "http://127.0.0.1:1"), 2, "no answer")
}

// Each thing that can be wrong with an archive on PostgreSQL is found.
func TestTheDoctorFindsWhatIsWrongWithADatabase(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{Settings: map[string]string{"max_replication_slots": "4"}})
	database := cluster.DSN("postgres")
	p := env.Oda(t, "serve", "--db", database)
	related(t, p.URL)
	finds(t, "nothing", run(t, "doctor", "--db", database), 0, "nothing is wrong; 0 warnings\n")
	dangling(t, p.URL)
	finds(t, "dangling references", run(t, "doctor", "--db", database), 0, append(found, "nothing is wrong; 4 warnings\n")...)
	conn := env.Connect(t, database)
	env.Exec(t, conn, "SELECT pg_create_physical_replication_slot('forgotten', true)",
		"UPDATE changes SET places[5] = places[5] - 3600000000 WHERE names[1] = 'sbi-1'",
		"ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()",
		"ALTER DATABASE postgres SET synchronous_commit = off")
	finds(t, "all at once", run(t, "doctor", "--db", database), 1,
		"wrong: database: the database postgres on ", "fsync is off: a crash", "full_page_writes is off", "autovacuum is off", "synchronous_commit is off: what was acknowledged",
		"warning: database: ", "the replication slot forgotten: nobody reads it",
		"warning: clock: position ", "wrong: damage: SBInstance sbi-1, version 1: ")
	env.Exec(t, conn, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
	finds(t, "another encoding", run(t, "doctor", "--db", cluster.DSN("latin")), 2, "its encoding is LATIN1")
	p.Stop()
	env.Exec(t, conn, "UPDATE migrations SET checksum = 'x'")
	finds(t, "other tables", run(t, "doctor", "--db", database), 1, "wrong: schema: the database postgres", "made by another oda")
}
