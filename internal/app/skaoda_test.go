package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
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
	"4.1": `CREATE TYPE sbd_status AS ENUM ('DRAFT', 'SUBMITTED', 'READY');
		CREATE TABLE tab_oda_sbd (id serial PRIMARY KEY, info jsonb, sbd_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text);
		CREATE TABLE tab_oda_sbi (id serial PRIMARY KEY, info jsonb, sbi_id text, version integer DEFAULT 1, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text NOT NULL, sbd_version serial NOT NULL);
		CREATE TABLE tab_oda_eb (id serial PRIMARY KEY, info jsonb, eb_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text, sbd_version integer, sbi_id text);
		CREATE TABLE tab_oda_prj (id serial PRIMARY KEY, info jsonb, prj_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			author text NOT NULL);
		CREATE TABLE tab_oda_prsl (id serial PRIMARY KEY, info jsonb);
		CREATE TABLE tab_oda_sbd_status_history (id serial, sbd_ref text, version integer, current_status sbd_status, PRIMARY KEY (id, sbd_ref, version, current_status))`,
	"5.3": `CREATE TYPE sbd_status AS ENUM ('Draft', 'Submitted', 'Ready');
		CREATE SCHEMA archive;
		SET search_path = archive;
		CREATE TABLE tab_oda_sbd (id bigserial PRIMARY KEY, info jsonb NOT NULL, sbd_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text);
		CREATE TABLE tab_oda_sbi (id bigserial PRIMARY KEY, info jsonb NOT NULL, sbi_id text, version integer DEFAULT 1, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text NOT NULL, sbd_version serial NOT NULL);
		CREATE TABLE tab_oda_eb (id bigserial PRIMARY KEY, info jsonb NOT NULL, eb_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			sbd_id text, sbd_version integer, sbi_id text);
		CREATE TABLE tab_oda_prj (id bigserial PRIMARY KEY, info jsonb NOT NULL, prj_id text, version integer, created_by text, created_on timestamptz, last_modified_on timestamptz, last_modified_by text,
			author text NOT NULL, prsl_id text, cycle text);
		CREATE TABLE tab_oda_prj_status_history (id serial, prj_ref text, version integer)`,
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
				if err := json.Unmarshal(a.Do("GET", path, "").Body, &d); err != nil {
					t.Fatal(err)
				}
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
	if err := app.Preserve(t.Context(), emptyDatabase(t, "sqlite"), []string{source}, maxBody, report, quiet); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "has no table tab_oda_sbi, so nothing was read there") {
		t.Errorf("it says %q", notes)
	}
}
