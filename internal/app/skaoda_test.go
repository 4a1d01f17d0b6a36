package app_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// skaSchemas are the tables of ska-db-oda in the releases whose schema is known.
var skaSchemas = map[string]string{
	"1.7": `CREATE TABLE tab_oda_sbd (id serial PRIMARY KEY, info jsonb, sbd_id text, version integer, created_by text, created_on timestamp, last_modified_on timestamp, last_modified_by text);
		CREATE TABLE tab_oda_sbi (id serial PRIMARY KEY, info jsonb, sbi_id text, version integer DEFAULT 1, created_by text, created_on timestamp, last_modified_on timestamp, last_modified_by text,
			sbd_id text NOT NULL, sbd_version serial NOT NULL);
		CREATE TABLE tab_oda_eb (id serial PRIMARY KEY, info jsonb, eb_id text, version integer, created_by text, created_on timestamp, last_modified_on timestamp, last_modified_by text,
			sbd_id text, sbd_version integer);
		CREATE TABLE tab_oda_prj (id serial PRIMARY KEY, info jsonb, prj_id text, version integer, created_by text, created_on timestamp, last_modified_on timestamp, last_modified_by text,
			author text NOT NULL);
		CREATE TABLE tab_oda_obs_prg (id serial PRIMARY KEY, info jsonb)`,
	"4.1": `CREATE TYPE sbd_status AS ENUM ('draft', 'submitted', 'ready', 'in_progress', 'observed', 'suspended', 'failed_processing', 'complete');
		CREATE TYPE sbi_status AS ENUM ('created', 'executing', 'observed', 'failed');
		CREATE TYPE eb_status AS ENUM ('created', 'fully_observed', 'failed');
		CREATE TABLE tab_oda_sbd (id serial PRIMARY KEY, info jsonb, sbd_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text);
		CREATE TABLE tab_oda_sbi (id serial PRIMARY KEY, info jsonb, sbi_id text, version integer DEFAULT 1, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text NOT NULL, sbd_version serial NOT NULL);
		CREATE TABLE tab_oda_eb (id serial PRIMARY KEY, info jsonb, eb_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text, sbd_version integer, sbi_id text);
		CREATE TABLE tab_oda_prj (id serial PRIMARY KEY, info jsonb, prj_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			author text NOT NULL);
		CREATE TABLE tab_oda_prsl (id serial PRIMARY KEY, info jsonb);
		CREATE TABLE tab_oda_sbd_status_history (id serial, sbd_ref text NOT NULL, version integer NOT NULL, previous_status sbd_status NOT NULL, current_status sbd_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, sbd_ref, version, current_status));
		CREATE TABLE tab_oda_sbi_status_history (id serial, sbi_ref text NOT NULL, version integer NOT NULL, previous_status sbi_status NOT NULL, current_status sbi_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, sbi_ref, version, current_status));
		CREATE TABLE tab_oda_eb_status_history (id serial, eb_ref text NOT NULL, version integer NOT NULL, previous_status eb_status NOT NULL, current_status eb_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, eb_ref, version, current_status))`,
	"5.3": `CREATE SCHEMA archive;
		SET search_path = archive;
		CREATE TYPE sbd_status AS ENUM ('Draft', 'Submitted', 'Ready', 'In Progress', 'Observed', 'Suspended', 'Failed Processing', 'Complete');
		CREATE TYPE sbi_status AS ENUM ('Created', 'Executing', 'Observed', 'Failed');
		CREATE TYPE eb_status AS ENUM ('Created', 'Fully Observed', 'Failed');
		CREATE TYPE prj_status AS ENUM ('Draft', 'Submitted', 'Ready', 'In Progress', 'Observed', 'Complete', 'Cancelled', 'Out of Time');
		CREATE TABLE tab_oda_sbd (id bigserial PRIMARY KEY, info jsonb NOT NULL, sbd_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text);
		CREATE TABLE tab_oda_sbi (id bigserial PRIMARY KEY, info jsonb NOT NULL, sbi_id text, version integer DEFAULT 1, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text NOT NULL, sbd_version serial NOT NULL);
		CREATE TABLE tab_oda_eb (id bigserial PRIMARY KEY, info jsonb NOT NULL, eb_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text, sbd_version integer, sbi_id text);
		CREATE TABLE tab_oda_prj (id bigserial PRIMARY KEY, info jsonb NOT NULL, prj_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			author text NOT NULL, prsl_id text, cycle text);
		CREATE TABLE tab_oda_sbd_status_history (id serial, sbd_ref text NOT NULL, version integer NOT NULL, previous_status sbd_status NOT NULL, current_status sbd_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, sbd_ref, version, current_status));
		CREATE TABLE tab_oda_sbi_status_history (id serial, sbi_ref text NOT NULL, version integer NOT NULL, previous_status sbi_status NOT NULL, current_status sbi_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, sbi_ref, version, current_status));
		CREATE TABLE tab_oda_eb_status_history (id serial, eb_ref text NOT NULL, version integer NOT NULL, previous_status eb_status NOT NULL, current_status eb_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, eb_ref, version, current_status));
		CREATE TABLE tab_oda_prj_status_history (id serial, prj_ref text NOT NULL, version integer NOT NULL, previous_status prj_status NOT NULL, current_status prj_status NOT NULL,
			created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text, PRIMARY KEY (id, prj_ref, version, current_status))`,
}

// skaRows fill such a database. The second version of sbd-1 is there twice, the block
// was modified in place, and the last SBInstance names another one in its document.
const skaRows = `INSERT INTO tab_oda_sbd (info, sbd_id, version, created_by, created_on, last_modified_by, last_modified_on) VALUES
		('{"sbd_id": "sbd-1", "name": "first", "telescope": "ska_mid", "metadata": {"version": 1, "created_by": "ada", "created_on": "2022-09-23T15:43:53.971548+00:00", "last_modified_by": "ada", "last_modified_on": "2022-09-23T15:43:53.971548+00:00", "pdm_version": "9.1.0"}}',
			'sbd-1', 1, 'ada', '2022-09-23 15:43:53.971548', 'ada', '2022-09-23 15:43:53.971548'),
		('{"sbd_id": "sbd-1", "name": "lost", "metadata": {"version": 2}}', 'sbd-1', 2, 'ada', '2022-09-23 15:43:53.971548', 'grace', '2022-10-01 10:00:00'),
		('{"sbd_id": "sbd-1", "name": "kept", "metadata": {"version": 2}}', 'sbd-1', 2, 'ada', '2022-09-23 15:43:53.971548', 'ada', '2022-10-01 10:00:01.5'),
		('{"sbd_id": "sbd-1", "name": "third", "metadata": {"version": 3}}', 'sbd-1', 3, 'ada', '2022-09-23 15:43:53.971548', 'DefaultUser', '2022-10-02');
	INSERT INTO tab_oda_sbi (info, sbi_id, version, created_by, created_on, last_modified_by, last_modified_on, sbd_id, sbd_version) VALUES
		('{"sbi_id": "sbi-1", "sbd_id": "sbd-1", "sbd_version": 1}', 'sbi-1', 1, 'ada', '2022-10-03', NULL, NULL, 'sbd-1', 1),
		('{"sbi_id": "sbi-9", "sbd_id": "sbd-1", "sbd_version": 1}', 'sbi-2', 1, 'ada', '2022-10-03', 'ada', '2022-10-03', 'sbd-1', 1);
	INSERT INTO tab_oda_eb (info, eb_id, version, created_by, created_on, last_modified_by, last_modified_on, sbd_id, sbd_version) VALUES
		('{"eb_id": "eb-1", "telescope": "ska_mid", "sbi_ref": "sbi-1", "request_responses": [{"request": "ska_oso_scripting.assign", "status": "OK"}, {"request": "ska_oso_scripting.scan", "status": "ERROR"}]}',
			'eb-1', 1, 'DefaultUser', '2022-10-03 12:00:00', 'DefaultUser', '2022-10-03 13:00:00', 'sbd-1', 1);
	INSERT INTO tab_oda_prj (info, prj_id, version, created_by, created_on, last_modified_by, last_modified_on, author) VALUES
		('{"prj_id": "prj-1", "name": "a project", "obs_blocks": [{"obs_block_id": "ob-1", "sbd_ids": ["sbd-1"]}]}', 'prj-1', 1, 'ada', '2022-09-01', 'ada', '2022-09-01', 'ada')`

func TestADatabaseOfSKAsArchiveIsImported(t *testing.T) {
	t.Parallel()
	for release, schema := range skaSchemas {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			source := env.Postgres(t)
			env.Exec(t, env.Connect(t, source), strings.Split(schema+";"+skaRows, ";")...)
			if release == "1.7" { // a text that jsonb does not take
				env.Exec(t, env.Connect(t, source), `ALTER TABLE tab_oda_prj ALTER info TYPE json USING replace(info::text, '"a project"', '"a project", "old": "\u0000"')::json`)
			}
			database := emptyDatabase(t, "sqlite")
			for range 2 { // the same again changes nothing
				aside := imported(t, database, source)
				slices.Sort(aside)
				if len(aside) != 2 || !strings.Contains(aside[0], "tab_oda_sbd:2 sbd-1 version 2: version 2 is there twice; the later one was kept, and this one, by \"grace\" of 2022-10-01T10:00:00.000000Z, is here as it was") ||
					!strings.Contains(aside[1], "tab_oda_sbi:2 sbi-2 version 1: it was found under the identifier sbi-2, but its sbi_id is sbi-9") {
					t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
				}
			}
			wantWhole(t, database)
			a := env.Start(t, func(c *app.Config) { c.Database = database })
			for path, want := range map[string]string{
				"/sbds/sbd-1/versions/1": `1 first ada 2022-09-23T15:43:53.971548Z ada 2022-09-23T15:43:53.971548Z`,
				"/sbds/sbd-1/versions/2": `2 kept ada 2022-09-23T15:43:53.971548Z ada 2022-10-01T10:00:01.500000Z`,
				"/sbds/sbd-1":            `3 third ada 2022-09-23T15:43:53.971548Z DefaultUser 2022-10-02T00:00:00.000000Z`,
				"/sbis/sbi-1":            `1  ada 2022-10-03T00:00:00.000000Z ada 2022-10-03T00:00:00.000000Z`,
				"/ebs/eb-1":              `1  DefaultUser 2022-10-03T12:00:00.000000Z DefaultUser 2022-10-03T13:00:00.000000Z`,
				"/prjs/prj-1":            `1 a project ada 2022-09-01T00:00:00.000000Z ada 2022-09-01T00:00:00.000000Z`,
			} {
				var d struct {
					Name     string
					Metadata struct {
						Version        int
						CreatedBy      string `json:"created_by"`
						CreatedOn      string `json:"created_on"`
						LastModifiedBy string `json:"last_modified_by"`
						LastModifiedOn string `json:"last_modified_on"`
					}
				}
				must.Do(t, json.Unmarshal(a.Do("GET", path, "").Body, &d))
				m := d.Metadata
				got := fmt.Sprint(m.Version, " ", d.Name, " ", m.CreatedBy, " ", m.CreatedOn, " ", m.LastModifiedBy, " ", m.LastModifiedOn)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
			}
			if text := a.Do("GET", "/ebs/eb-1/request_responses", "").Text(); strings.Count(text, `"sequence"`) != 2 {
				t.Errorf("the block has the records %s", text)
			}
			if text := a.Do("GET", "/prjs/prj-1/provenance", "").Text(); !strings.Contains(text, "eb-1") {
				t.Errorf("what hangs on the project is %s", text)
			}
		})
	}
}

// Whoever moves an archive should know that a kind is not read at all.
func TestATableOfSKAsArchiveThatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	source := env.Postgres(t)
	env.Exec(t, env.Connect(t, source), strings.Split(skaSchemas["1.7"]+";"+skaRows+";DROP TABLE tab_oda_sbi", ";")...)
	var notes []string
	report := moving.NewReport(nil, func(moving.SetAside) {})
	report.Note = func(text string) { notes = append(notes, text) }
	must.Do(t, app.Preserve(t.Context(), emptyDatabase(t, "sqlite"), []string{source}, maxBody, report, quiet))
	if len(notes) != 1 || !strings.Contains(notes[0], "has no table tab_oda_sbi, so nothing was read there") {
		t.Errorf("it says %q", notes)
	}
}

// What the columns of a row say counts, whatever is in its document, and what neither says is
// in the report.
func TestColumnsCountMoreThanTheDocument(t *testing.T) {
	t.Parallel()
	source := env.Postgres(t)
	env.Exec(t, env.Connect(t, source), strings.Split(skaSchemas["1.7"], ";")...)
	env.Exec(t, env.Connect(t, source), `INSERT INTO tab_oda_sbd (info, sbd_id, version, created_by, created_on, last_modified_by, last_modified_on) VALUES
		('{"sbd_id": "sbd-1", "metadata": {"version": "1", "created_by": "", "pdm_version": "9"}}', 'sbd-1', 1, 'ada', '2022-10-01', 'ada', '2022-10-01'),
		('{"sbd_id": "sbd-1", "metadata": {"version": "v2", "created_by": "ada"}}', 'sbd-1', 2, 'ada', '2022-10-01', 'eve', '2022-10-02'),
		('{"sbd_id": "sbd-2", "metadata": {"version": 1, "created_by": ""}}', 'sbd-2', 1, '', '2022-10-01', NULL, NULL),
		('{"sbd_id": "sbd-2"}', 'sbd-2', 2, NULL, '2022-10-01', '', '2022-10-02')`)
	for _, how := range []string{"--preserve", "--quiet"} {
		database := emptyDatabase(t, "sqlite")
		o := run(t, "import", source, "--db="+database, how)
		if !strings.Contains(o.out, "4 read, 4 imported, 0 already there, 0 set aside") {
			t.Errorf("%s: it says %s%s", how, o.out, o.err)
		}
		if how != "--preserve" {
			continue
		}
		for _, want := range []string{
			`tab_oda_sbd:3: sbd-2 version 1: imported, but as created by "DefaultUser", since it does not say by whom` + "\n",
			`tab_oda_sbd:4: sbd-2 version 2: imported, but as created by "DefaultUser", since it does not say by whom; and imported, but as modified by "DefaultUser", since it does not say by whom` + "\n",
		} {
			if o.code != 5 || !strings.Contains(o.err, want) {
				t.Errorf("it exits with %d and does not say %q: %s", o.code, want, o.err)
			}
		}
		a := env.Start(t, func(c *app.Config) { c.Database = database })
		if text := a.Do("GET", "/sbds/sbd-1/versions/1", "").Text(); !strings.Contains(text, `"version":1,`) || !strings.Contains(text, `"created_by":"ada"`) || !strings.Contains(text, `"pdm_version":`) {
			t.Errorf("the first version is %s", text)
		}
	}
}

// PostgreSQL sends texts as the client asks for, which is not UTF-8 unless it asks.
func TestADatabaseThatIsNotInUTF8IsImported(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "EUC_JP"} {
		address := env.Postgres(t)
		source := must.Get(url.Parse(address))(t)
		source.Path += "_" + strings.ToLower(encoding)
		name := strings.TrimPrefix(source.Path, "/")
		env.Exec(t, env.Connect(t, address), fmt.Sprintf(`CREATE DATABASE %s ENCODING '%s' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`, name, encoding))
		t.Cleanup(func() { env.Exec(t, env.Connect(t, address), "DROP DATABASE "+name+" WITH (FORCE)") })
		text := map[string]string{"LATIN1": "Grüße, Å", "EUC_JP": "天文台"}[encoding]
		env.Exec(t, env.Connect(t, source.String()), append([]string{"SET client_encoding = 'UTF8'"}, strings.Split(skaSchemas["1.7"], ";")...)...)
		env.Exec(t, env.Connect(t, source.String()), "SET client_encoding = 'UTF8'", fmt.Sprintf(`INSERT INTO tab_oda_sbd (info, sbd_id, version, created_by, created_on) VALUES ('{"sbd_id": "sbd-1", "name": "%s"}', 'sbd-1', 1, '%[1]s', '2022-10-01')`, text))
		database := emptyDatabase(t, "sqlite")
		if aside := imported(t, database, source.String()); len(aside) > 0 {
			t.Errorf("%s: it sets aside:\n%s", encoding, strings.Join(aside, "\n"))
		}
		a := env.Start(t, func(c *app.Config) { c.Database = database })
		if got := a.Do("GET", "/sbds/sbd-1", "").Text(); strings.Count(got, text) != 3 {
			t.Errorf("%s: the document is %s, want %q as name and users", encoding, got, text)
		}
	}
}
