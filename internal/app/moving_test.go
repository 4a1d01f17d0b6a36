package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda"
	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
	"oda/internal/test/sample"
)

var quiet = slog.New(slog.DiscardHandler)

// maxBody is the largest document that is imported, as of a server by default.
const maxBody = 64 << 20

// emptyDatabase returns a database without an archive.
func emptyDatabase(t *testing.T, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return env.Postgres(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
}

// exported exports a database into a file.
func exported(t *testing.T, database string, scope oda.Scope) string {
	t.Helper()
	content := must.Get(export(t, database, scope))(t)
	path := filepath.Join(t.TempDir(), "export.oda.zst")
	must.Do(t, os.WriteFile(path, content, 0o600))
	return path
}

func export(t *testing.T, database string, scope oda.Scope) ([]byte, error) {
	var content bytes.Buffer
	ignore := func(int64) {}
	_, err := app.Export(t.Context(), database, scope, &content, quiet, ignore, ignore)
	return content.Bytes(), err
}

// imported imports sources as they were, and returns what was set aside.
func imported(t *testing.T, database string, sources ...string) (aside []string) {
	t.Helper()
	report := moving.NewReport(nil, func(s moving.SetAside) {
		aside = append(aside, fmt.Sprintf("%s %s version %d: %s", s.Origin, s.ID, s.Version, s.Reason))
	})
	must.Do(t, app.Preserve(t.Context(), database, sources, maxBody, report, quiet))
	return aside
}

// wantSame demands that two exports are the same.
func wantSame(t *testing.T, one, other string) {
	t.Helper()
	a := must.Get(os.ReadFile(one))(t)
	b := must.Get(os.ReadFile(other))(t)
	if !bytes.Equal(a, b) {
		t.Errorf("the exports differ: %d and %d bytes", len(a), len(b))
	}
}

func TestAnArchiveMovesBetweenEnginesAndBackUnchanged(t *testing.T) {
	t.Parallel()
	for _, from := range sample.Engines {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			source, old := env.Sample(t, from)
			first := exported(t, source, oda.Scope{})
			there := map[string]string{"sqlite": "postgres", "postgres": "sqlite"}[from]
			for _, to := range []string{there, from} {
				database := emptyDatabase(t, to)
				for _, time := range []string{"first", "second"} {
					if aside := imported(t, database, first); len(aside) > 0 {
						t.Fatalf("the %s import into %s sets aside:\n%s", time, to, strings.Join(aside, "\n"))
					}
				}
				second := exported(t, database, oda.Scope{})
				wantSame(t, first, second)
				wantWhole(t, database)
				first = second
				a := env.Start(t, func(c *app.Config) { c.Database = database })
				for _, u := range sampleAnswers {
					t.Run(u.name+" on "+to, func(t *testing.T) { u.check(t, a, old) })
				}
			}
		})
	}
}

func TestAnExportHasWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, engine := range sample.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database := emptyDatabase(t, engine)
			a := env.Start(t, func(c *app.Config) { c.Database = database })
			for path, document := range map[string]string{
				"/prjs/prj-1":      `{"obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["sbd-listed"]}]}`,
				"/prjs/prj-2":      `{"obs_blocks":[{"sbd_ids":["sbd-other"]}]}`,
				"/sbds/sbd-listed": `{}`, "/sbds/sbd-other": `{}`,
				"/sbds/sbd-block": `{"ob_ref":"ob-1"}`,
				"/sbis/sbi-1":     `{"sbd_ref":"sbd-block","eb_ref":"eb-named"}`,
				"/ebs/eb-named":   `{}`, "/ebs/eb-naming": `{"sbi_ref":"sbi-1"}`, "/ebs/eb-direct": `{"sbd_ref":"sbd-listed"}`, "/ebs/eb-other": `{"sbd_ref":"sbd-other"}`,
			} {
				answered(t, "PUT", a.URL()+path, document)
			}
			var stored struct {
				Metadata struct {
					LastModifiedOn string `json:"last_modified_on"`
				}
			}
			text := answered(t, "PATCH", a.URL()+"/ebs/eb-other/request_response", `{"request":"late"}`)
			must.Do(t, json.Unmarshal([]byte(text), &stored))
			since := must.Get(oda.ParseAsOf(stored.Metadata.LastModifiedOn))(t)
			answered(t, "POST", a.URL()+"/sbds/sbd-other/status", `{"status":"Suspended","at":"2020-01-01T00:00:00Z"}`)
			must.Do(t, a.Stop())
			for name, test := range map[string]struct {
				scope oda.Scope
				want  string
			}{
				"a kind":                  {oda.Scope{Kind: oda.SBInstance}, "sbi-1"},
				"what changed since":      {oda.Scope{Since: &since}, "eb-other sbd-other"},
				"blocks changed since":    {oda.Scope{Since: &since, Kind: oda.ExecutionBlock}, "eb-other"},
				"a project":               {oda.Scope{Project: "prj-1"}, "eb-direct eb-named eb-naming prj-1 sbd-block sbd-listed sbi-1"},
				"the blocks of a project": {oda.Scope{Project: "prj-1", Kind: oda.ExecutionBlock}, "eb-direct eb-named eb-naming"},
			} {
				file := exported(t, database, test.scope)
				copied := emptyDatabase(t, "sqlite")
				if aside := imported(t, copied, file); len(aside) > 0 {
					t.Errorf("%s: it sets aside %s", name, aside)
				}
				wantSame(t, file, exported(t, copied, oda.Scope{}))
				b := env.Start(t, func(c *app.Config) { c.Database = copied })
				var ids []string
				for _, kind := range oda.Kinds {
					var some []string
					must.Do(t, json.Unmarshal(b.Do("GET", "/"+kind.Collection()+"?created_after=1970-01-01", "").Body, &some))
					ids = append(ids, some...)
				}
				slices.Sort(ids)
				if got := strings.Join(ids, " "); got != test.want {
					t.Errorf("%s: the export has %s, want %s", name, got, test.want)
				}
			}
		})
	}
}

// Whatever of an export is damaged, the import says where, and writes nothing.
func TestADamagedExportIsRefusedWithThePlace(t *testing.T) {
	t.Parallel()
	source := healthyArchive(t, "sqlite")
	a := env.Start(t, func(c *app.Config) { c.Database = source })
	for i := range 5 { // more than is loaded at once
		answered(t, "PUT", fmt.Sprintf("%s/sbds/sbd-large-%d", a.URL(), i), `{"filler":"`+strings.Repeat("x", 1<<20)+`"}`)
	}
	answered(t, "POST", a.URL()+"/sbds/sbd-large-0/status", `{"status":"Ready"}`)
	must.Do(t, a.Stop())
	file := exported(t, source, oda.Scope{})
	compressed := must.Get(os.ReadFile(file))(t)
	decoder := must.Get(zstd.NewReader(nil))(t)
	defer decoder.Close()
	encoder := must.Get(zstd.NewWriter(nil))(t)
	defer encoder.Close()
	plain := must.Get(decoder.DecodeAll(compressed, nil))(t)
	lines := bytes.SplitAfter(plain, []byte("\n"))
	edited := func(at int, old, new string) []byte {
		copied := slices.Clone(lines)
		if copied[at] = bytes.Replace(copied[at], []byte(old), []byte(new), 1); bytes.Equal(copied[at], lines[at]) {
			t.Fatalf("line %d has no %s: %s", at+1, old, lines[at])
		}
		return encoder.EncodeAll(bytes.Join(copied, nil), nil)
	}
	flipped := bytes.Clone(compressed)
	flipped[len(flipped)/2] ^= 1
	last := len(lines) - 2
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"a bit flips":               {flipped, "the export is damaged at line "},
		"it is cut off":             {compressed[:len(compressed)-200], "it ends there, before its manifest"},
		"its end is missing":        {encoder.EncodeAll(bytes.Join(lines[:last], nil), nil), fmt.Sprintf("damaged at line %d: it ends there", last+1)},
		"a line is missing":         {encoder.EncodeAll(bytes.Join(slices.Delete(slices.Clone(lines), 1, 2), nil), nil), "the lines do not fit the checksums in its manifest"},
		"a user is edited":          {edited(7, `"by":"`, `"by":"x`), "damaged at line 8: it is damaged: its values do not fit their check"},
		"a document is edited":      {edited(1, `ska_mid`, `ska_low`), "damaged at line 2: it is damaged: its text does not fit its SHA-256"},
		"a status is edited":        {edited(last-1, `"status":"Ready"`, `"status":"Draft"`), fmt.Sprintf("damaged at line %d: it is damaged: its values do not fit their check", last)},
		"a status has a text":       {edited(last-1, `"}`, `","record":{}}`), fmt.Sprintf("damaged at line %d: it is not a line of an export", last)},
		"a status is not counted":   {edited(last, `"statuses":`, `"statuses":1`), "its manifest counts other"},
		"the manifest is edited":    {edited(last, `"sbds":`, `"sbds":1`), "its manifest counts other"},
		"something follows":         {append(bytes.Clone(compressed), encoder.EncodeAll([]byte("more\n"), nil)...), "something follows its manifest"},
		"its first line is edited":  {edited(0, `"form":3`, `"form":3 `), "damaged at line 1"},
		"its line ends are changed": {edited(0, "\n", "\r\n"), "damaged at line 1"},
		"it is cut off at once":     {compressed[:10], "damaged at line 1"},
		"it is empty":               {nil, "damaged at line 1"},
		"its first byte is damaged": {append([]byte{0}, compressed[1:]...), "damaged at line 1"},
		"it is of another program":  {edited(0, `"form":3`, `"form":4`), "has form 4, and this version of oda reads only form 3"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "damaged.oda.zst")
			must.Do(t, os.WriteFile(path, test.content, 0o600))
			database := emptyDatabase(t, "sqlite")
			report := moving.NewReport(nil, func(s moving.SetAside) { t.Errorf("set aside: %v", s) })
			err := app.Preserve(t.Context(), database, []string{path}, maxBody, report, quiet)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if _, err := os.Stat(strings.TrimPrefix(database, "sqlite:")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it left an archive behind (%v)", err)
			}
		})
	}
}

// An import that is killed while it writes goes on where it was: nothing twice, nothing
// missing.
func TestAKilledImportGoesOn(t *testing.T) {
	t.Parallel()
	source := emptyDatabase(t, "sqlite")
	a := env.Start(t, func(c *app.Config) { c.Database = source })
	filler := strings.Repeat("x", 60<<10)
	const blocks = 200
	for i := range blocks {
		answered(t, "PUT", fmt.Sprintf("%s/ebs/eb-%d", a.URL(), i), `{"filler":"`+filler+`","request_responses":[{"request":"first"}]}`)
		answered(t, "PATCH", fmt.Sprintf("%s/ebs/eb-%d/request_response", a.URL(), i/2), fmt.Sprintf(`{"request":"call %d"}`, i), "Idempotency-Key", fmt.Sprint(i))
	}
	must.Do(t, a.Stop())
	file := exported(t, source, oda.Scope{})
	for _, engine := range sample.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, tries := "", 0
			for database == "" {
				if tries++; tries > 20 {
					t.Fatal("every import was done before it could be killed")
				}
				database = killedImport(t, engine, file, blocks)
			}
			if aside := imported(t, database, file); len(aside) > 0 {
				t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
			}
			wantSame(t, file, exported(t, database, oda.Scope{}))
			wantWhole(t, database)
		})
	}
}

// killedImport imports a file with so many versions, kills the import when a part of them
// is there, and returns the database. It is empty if the import was faster.
func killedImport(t *testing.T, engine, file string, all int64) (database string) {
	t.Helper()
	database = emptyDatabase(t, engine)
	must.Do(t, env.Start(t, func(c *app.Config) { c.Database = database }).Stop())
	versions := counting(t, database)
	p := must.Get(fault.Start(command(t, "import", file, "--preserve", "-q", "--db="+database)))(t)
	n := int64(0)
	for n = versions(); n == 0 && p.Running(); n = versions() {
		time.Sleep(time.Millisecond)
	}
	p.Kill()
	switch {
	case p.State().Exited() && !p.State().Success():
		t.Fatalf("the import ends with %v", p.State())
	case p.State().Exited() || n == all:
		return ""
	}
	return database
}

// counting returns a function that counts the versions in a database.
func counting(t *testing.T, database string) func() int64 {
	t.Helper()
	const query = "SELECT count(*) FROM versions"
	path, ok := strings.CutPrefix(database, "sqlite:")
	if !ok {
		conn := env.Connect(t, database)
		return func() int64 { return env.Query[int64](t, conn, query) }
	}
	return func() int64 {
		conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
		defer conn.Close()
		n := must.Get(sqlitex.ResultInt64(conn.Prep(query)))(t)
		return n
	}
}

// Where there is no room, the import says so, and goes on once there is.
func TestAnImportSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	file := exported(t, healthyArchive(t, "sqlite"), oda.Scope{})
	for engine, begin := range map[string]func(t *testing.T) (folder, database string, restart func()){
		"sqlite": func(t *testing.T) (string, string, func()) {
			dir := env.SmallDisk(t, 32<<20)
			return dir, "sqlite:" + filepath.Join(dir, "archive.db"), func() {}
		},
		"postgres": func(t *testing.T) (string, string, func()) {
			dir := env.SmallDisk(t, 192<<20)
			cluster := env.NewCluster(t, env.ClusterOptions{DataDir: filepath.Join(dir, "data"), Settings: map[string]string{"max_wal_size": "32MB", "shared_buffers": "16MB"}})
			return dir, cluster.DSN("postgres"), func() {
				if !cluster.Running() { // it stops if there is no room for its log
					cluster.Start()
				}
			}
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder, database, restart := begin(t)
			must.Do(t, env.Start(t, func(c *app.Config) { c.Database = database }).Stop())
			empty := env.FillDisk(t, folder)
			// There is room to open the archive, but not for all that is imported.
			filler := filepath.Join(folder, "filler")
			if info, err := os.Stat(filler); err != nil || os.Truncate(filler, info.Size()-64<<10) != nil {
				t.Fatal("no room can be made")
			}
			o := run(t, "import", file, "--preserve", "--db", database)
			if o.code != 1 || !strings.Contains(o.err, "disk of the archive is full") && !strings.Contains(o.err, "The cause is: the transaction failed before its commit: ERROR: could not extend file") {
				t.Errorf("the import exits with %d: %s", o.code, o.err)
			}
			empty()
			restart()
			if aside := imported(t, database, file); len(aside) > 0 {
				t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
			}
			wantSame(t, file, exported(t, database, oda.Scope{}))
		})
	}
}

// An export is unpacked among the temporary files: if there is no room, not the disk of an
// archive is full.
func TestAnExportThatCannotBeUnpackedSaysWhere(t *testing.T) {
	t.Parallel()
	file := exported(t, healthyArchive(t, "sqlite"), oda.Scope{})
	for _, room := range []int{128 << 10, 300 << 10} { // not even for an empty archive, and for that alone
		small := env.SmallDisk(t, room)
		cmd := command(t, "import", file, "--db=sqlite:new.db")
		cmd.Env = append(cmd.Env, "TMPDIR="+small)
		out, err := cmd.CombinedOutput()
		if want := "oda: import: " + file + " cannot be unpacked in " + small + ": "; err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "TMPDIR") {
			t.Errorf("with %d bytes: %v\n%s", room, err, out)
		}
	}
}

// The temporary archive of a served export is removed at the end of the process, or, if
// that was killed, by the next one. That of a running process stays.
func TestTheTemporaryArchiveOfAnExportIsRemoved(t *testing.T) {
	file := exported(t, healthyArchive(t, "sqlite"), oda.Scope{})
	env.Program(t) // stays where it is
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	unpacked := func() int {
		t.Helper()
		all := must.Get(filepath.Glob(filepath.Join(temporary, "oda-export-*")))(t)
		return len(all)
	}
	killed := env.Oda(t, "serve", "--export", file)
	killed.Kill()
	if n := unpacked(); n != 1 {
		t.Fatalf("there are %d temporary archives after a kill", n)
	}
	one := env.Oda(t, "serve", "--export", file)
	other := env.Oda(t, "serve", "--export", file)
	if n := unpacked(); n != 2 {
		t.Errorf("two processes have %d temporary archives", n)
	}
	for _, p := range []*env.Process{one, other} {
		answered(t, "GET", p.URL+"/sbds/sbd-m51", "")
		p.MustStop()
	}
	if n := unpacked(); n != 0 {
		t.Errorf("%d temporary archives are left", n)
	}
}
