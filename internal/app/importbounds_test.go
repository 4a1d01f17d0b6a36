package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// What an import stores, the servers of the archive must take again in an update.
func TestADocumentThatNoServerWouldTakeIsSetAside(t *testing.T) {
	t.Parallel()
	document := func(id string, size int) string {
		return fmt.Sprintf(`{"sbd_id":%q,"filler":%q,"metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00Z"}}`, id, strings.Repeat("x", size))
	}
	small, large := document("sbd-1", 100), document("sbd-2", 20<<10)
	lines := filepath.Join(t.TempDir(), "documents.ndjson")
	must.Do(t, os.WriteFile(lines, []byte(small+"\n"+large+"\n"), 0o600))
	folder := t.TempDir()
	for name, text := range map[string]string{"1.json": small, "2.json": large} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	full := emptyDatabase(t, "sqlite")
	if aside := imported(t, full, lines); len(aside) > 0 {
		t.Fatalf("it sets aside:\n%s", strings.Join(aside, "\n"))
	}
	export := exported(t, full, oda.Scope{})
	source := env.Postgres(t)
	env.Exec(t, env.Connect(t, source), strings.Split(skaSchemas["1.7"], ";")...)
	for id, text := range map[string]string{"sbd-1": small, "sbd-2": large} {
		env.Exec(t, env.Connect(t, source), fmt.Sprintf(`INSERT INTO tab_oda_sbd (id, info, sbd_id, version) VALUES (%s, '%s', '%s', 1)`, strings.TrimPrefix(id, "sbd-"), text, id))
	}
	running := env.Start(t, func(c *app.Config) { c.Database = full })
	for name, test := range map[string]struct{ source, place, engine string }{
		"lines":                   {lines, lines + ":2: ", "sqlite"},
		"lines into PostgreSQL":   {lines, lines + ":2: ", "postgres"},
		"a folder":                {folder, filepath.Join(folder, "2.json") + ": ", "sqlite"},
		"an export":               {export, export + ":3: ", "sqlite"},
		"one into PostgreSQL":     {export, export + ":3: ", "postgres"},
		"a running archive":       {running.Origin(), "/sbds/sbd-2: sbd-2 version 1: ", "sqlite"},
		"a database of SKA's own": {source, "/tab_oda_sbd:2: ", "sqlite"},
	} {
		for _, how := range []string{"--preserve", "--quiet"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				database := emptyDatabase(t, test.engine)
				o := run(t, "import", test.source, "--db="+database, how, "--max-body=4KiB")
				if o.code != 5 || !strings.Contains(o.err, test.place) || !strings.Contains(o.err, "larger --max-body") || !strings.Contains(o.out, " 1 imported, 0 already there, 1 set aside") {
					t.Errorf("it exits with %d: %s%s", o.code, o.out, o.err)
				}
				again := command(t, "import", test.source, "--db="+database, how)
				again.Env = append(again.Env, "ODA_MAX_BODY=64KiB")
				if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), " 1 imported, 1 already there, 0 set aside") {
					t.Errorf("with a larger bound: %v: %s", err, out)
				}
			})
		}
	}
}

// Whoever imports the folder of somebody else must not import what only they themselves may
// read, nor wait for a pipe.
func TestLinksInAFolderAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, folder := t.TempDir(), t.TempDir()
	write := func(dir, name, id string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, `{"sbd_id":%q}`, id), 0o600))
	}
	write(elsewhere, "secret.json", "sbd-secret")
	write(folder, "own.json", "sbd-own")
	for name, to := range map[string]string{
		"file.json": filepath.Join(elsewhere, "secret.json"), "beside.json": "own.json", "folder": elsewhere, "lost.json": "nowhere",
		"README": filepath.Join(elsewhere, "secret.json"), // which would not be read anyway
	} {
		must.Do(t, os.Symlink(to, filepath.Join(folder, name)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600))
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(folder, link))
	for _, source := range []string{folder, link} {
		o := run(t, "import", source, "--db="+emptyDatabase(t, "sqlite"))
		for _, name := range []string{"file.json", "beside.json", "folder", "lost.json"} {
			if want := fmt.Sprintf("set aside: %s: it is a link, and links in a folder are not followed", filepath.Join(source, name)); !strings.Contains(o.err, want) {
				t.Errorf("it does not say %q: %s", want, o.err)
			}
		}
		if want := filepath.Join(source, "pipe.json") + ": it is not an ordinary file"; !strings.Contains(o.err, want) {
			t.Errorf("it does not say %q: %s", want, o.err)
		}
		if o.code != 5 || !strings.Contains(o.out, "1 read, 1 imported, 0 already there, 5 set aside") {
			t.Errorf("it exits with %d and says %s", o.code, o.out)
		}
	}
	if o := run(t, "import", filepath.Join(folder, "file.json"), "--db="+emptyDatabase(t, "sqlite")); o.code != 0 {
		t.Errorf("a link that is named itself is not imported: %s", o.err)
	}
}
