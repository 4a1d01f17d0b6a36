package app_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// skaStatuses fill the tables of statuses, with labels of release 5.3. One row of sbd-1 is
// of a version that is not there, and one of an earlier time than the row before it; one
// row of eb-1 does not say by whom. sbd-9 and sbi-2 are not there.
const skaStatuses = `INSERT INTO tab_oda_sbd_status_history (sbd_ref, version, previous_status, current_status, created_by, created_on, last_modified_by, last_modified_on) VALUES
		('sbd-1', 1, 'Draft', 'Draft', 'ada', '2022-09-23 15:43:53.971548Z', 'ada', '2022-09-23 15:43:53.971548Z'),
		('sbd-9', 1, 'Draft', 'Draft', 'ada', '2022-09-23Z', 'ada', '2022-09-23Z'),
		('sbd-1', 2, 'Draft', 'Ready', 'ada', '2022-09-23 15:43:53.971548Z', 'grace', '2022-10-01 12:00:00+02:00'),
		('sbd-1', 7, 'Ready', 'Complete', 'ada', '2022-09-23Z', 'ada', '2022-10-03Z'),
		('sbd-1', 3, 'Ready', 'In Progress', 'ada', '2022-09-23Z', 'ada', '2022-09-30Z');
	INSERT INTO tab_oda_sbi_status_history (sbi_ref, version, previous_status, current_status, created_by, created_on, last_modified_by, last_modified_on) VALUES
		('sbi-2', 1, 'Created', 'Executing', 'ada', '2022-10-03Z', 'ada', '2022-10-03Z');
	INSERT INTO tab_oda_eb_status_history (eb_ref, version, previous_status, current_status, created_by, created_on, last_modified_by, last_modified_on) VALUES
		('eb-1', 1, 'Created', 'Created', '', '2022-10-03 12:00:00Z', NULL, NULL),
		('eb-1', 1, 'Created', 'Fully Observed', 'ada', '2022-10-03 12:00:00Z', 'ada', '2022-10-03 13:00:01Z')`

// skaWithStatuses is such a database.
func skaWithStatuses(t *testing.T, release string) (address string) {
	t.Helper()
	address = env.Postgres(t)
	rows := skaStatuses
	if release == "4.1" {
		for _, label := range []string{"Draft", "Ready", "Complete", "In Progress", "Created", "Executing", "Fully Observed"} {
			rows = strings.ReplaceAll(rows, "'"+label+"'", "'"+strings.ReplaceAll(strings.ToLower(label), " ", "_")+"'")
		}
	}
	env.Exec(t, env.Connect(t, address), strings.Split(skaSchemas[release]+";"+skaRows+";"+rows, ";")...)
	return address
}

// told returns the statuses of an entity, oldest first, as lines.
func told(t *testing.T, a *env.Archive, path string) (lines string) {
	t.Helper()
	var page struct {
		Statuses []struct {
			Status, Class, Previous, At, By, On string
			Version                             int64
		}
	}
	must.Do(t, json.Unmarshal(a.Must("GET", path+"/status/history", "").Body, &page))
	slices.Reverse(page.Statuses)
	for _, s := range page.Statuses {
		lines += strings.Join([]string{s.Status, s.Class, s.Previous, strconv.FormatInt(s.Version, 10), s.At, s.By, s.On}, "|") + "\n"
	}
	return lines
}

func TestStatusesOfSKAsArchiveAreImported(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"4.1", "5.3"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			source := skaWithStatuses(t, release)
			database := emptyDatabase(t, "sqlite")
			for range 2 { // the same again changes nothing
				o := run(t, "import", source, "--db="+database, "--preserve", "--quiet", "--report="+t.TempDir()+"/report")
				for _, want := range []string{
					`tab_oda_sbd_status_history:2: sbd-9 status "Draft": the table tab_oda_sbd has no such entity` + "\n",
					`tab_oda_sbd_status_history:4: sbd-1 status "Complete": version 7, which it is about, was not imported` + "\n",
					`tab_oda_sbd_status_history:5: sbd-1 status "In Progress": imported, but with the time 2022-10-01T10:00:00.000000Z, since no status may be earlier than the one before; it says 2022-09-30T00:00:00.000000Z` + "\n",
					`tab_oda_sbi_status_history:1: sbi-2 status "Executing": version 1, which it is about, was not imported` + "\n",
					`tab_oda_eb_status_history:1: eb-1 status "Created": imported, but as said by "DefaultUser", since it does not say by whom` + "\n",
				} {
					if !strings.Contains(inTitleCase(o.err), want) {
						t.Errorf("it does not say %q: %s", want, o.err)
					}
				}
				if o.code != 5 || !strings.Contains(o.out, "16 read") || !strings.Contains(o.out, "5 set aside") {
					t.Errorf("it exits with %d, and says %s%s", o.code, o.out, o.err)
				}
			}
			wantWhole(t, database)
			a := env.Start(t, func(c *app.Config) { c.Database = database })
			for path, want := range map[string]string{
				"/sbds/sbd-1": "Draft|planned||1|2022-09-23T15:43:53.971548Z|ada|2022-09-23T15:43:53.971548Z\n" +
					"Ready|planned|Draft|2|2022-10-01T10:00:00.000000Z|grace|2022-10-01T10:00:00.000000Z\n" +
					"In Progress|running|Ready|3|2022-10-01T10:00:00.000000Z|ada|2022-10-01T10:00:00.000000Z\n",
				"/ebs/eb-1": "Created|planned||1|2022-10-03T12:00:00.000000Z|DefaultUser|2022-10-03T12:00:00.000000Z\n" +
					"Fully Observed|done|Created|1|2022-10-03T13:00:01.000000Z|ada|2022-10-03T13:00:01.000000Z\n",
				"/prjs/prj-1": "",
			} {
				if diff := cmp.Diff(want, inTitleCase(told(t, a, path))); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
			}
			if text := a.Must("GET", "/ebs/search?class=done", "").Text(); !strings.Contains(text, `"eb-1"`) {
				t.Errorf("a search by class finds %s", text)
			}
		})
	}
}

// inTitleCase returns a text with the labels of release 4.1 as they were later.
func inTitleCase(text string) string {
	return strings.NewReplacer("draft", "Draft", "ready", "Ready", "in_progress", "In Progress", "complete", "Complete",
		"executing", "Executing", "created|", "Created|", `"created"`, `"Created"`, "fully_observed", "Fully Observed").Replace(text)
}

// Without --preserve, they are said of the versions as they are numbered now.
func TestStatusesOfSKAsArchiveAreSaidAgain(t *testing.T) {
	t.Parallel()
	source := skaWithStatuses(t, "5.3")
	env.Exec(t, env.Connect(t, source), "DELETE FROM archive.tab_oda_sbd WHERE version = 1")
	database := emptyDatabase(t, "sqlite")
	for _, want := range []string{"15 read, 9 imported, 0 already there, 6 set aside", "15 read, 0 imported, 9 already there, 6 set aside"} {
		if o := run(t, "import", source, "--db="+database, "--quiet", "--user=eve"); !strings.Contains(o.out, want) {
			t.Errorf("it says %s%s, want %q", o.out, o.err, want)
		}
	}
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	lines := strings.Split(told(t, a, "/sbds/sbd-1"), "\n")
	for i, want := range []string{"Ready|planned||1|2022-10-01T10:00:00.000000Z|eve|", "In Progress|running|Ready|2|2022-09-30T00:00:00.000000Z|eve|"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("it has %q, want %q", lines[i], want)
		}
	}
}

// A table that cannot be read is said, and so is what its rows lack.
func TestStatusesOfSKAsArchiveThatAreNone(t *testing.T) {
	t.Parallel()
	source := env.Postgres(t)
	env.Exec(t, env.Connect(t, source), strings.Split(skaSchemas["1.7"]+";"+skaRows+`;
		CREATE TABLE tab_oda_sbd_status_history (id serial, sbd_ref text, version integer);
		CREATE TABLE tab_oda_status (id serial, entity_id text, status text);
		CREATE TABLE tab_oda_eb_status_history (id serial, eb_ref text, version integer, current_status text, created_on timestamptz);
		INSERT INTO tab_oda_eb_status_history (eb_ref, version, current_status, created_on) VALUES
			('eb-1', 1, '', '2022-10-03Z'), ('eb-1', 1, NULL, '2022-10-03Z'), ('eb-1', NULL, 'Created', '2022-10-03Z'), ('eb-1', 1, 'Created', NULL), (NULL, 1, 'Created', '2022-10-03Z'),
			('eb-1', 0, 'Created', '2022-10-03Z'), ('eb-1', 1, repeat('x', 65), '2022-10-03Z'), ('eb-1', 1, 'Failed', '2022-10-03Z')`, ";")...)
	var aside, notes []string
	report := moving.NewReport(nil, func(s moving.SetAside) {
		if !s.Changed && strings.Contains(s.File, "status_history") {
			aside = append(aside, strconv.FormatInt(s.Line, 10)+": "+s.Reason)
		}
		if s.Document == nil && !s.Changed {
			t.Errorf("the report does not have %v", s)
		}
	})
	report.Note = func(text string) { notes = append(notes, text) }
	must.Do(t, app.Preserve(t.Context(), emptyDatabase(t, "sqlite"), []string{source}, maxBody, report, quiet))
	slices.Sort(aside)
	want := []string{
		"1: its column current_status is empty", "2: its column current_status is empty", "3: its column version is null",
		"4: neither its column last_modified_on nor its column created_on says when it was set", "5: the table tab_oda_eb has no such entity",
		"6: its version is not a number from 1", "7: its status is not 1 to 64 characters without control characters",
	}
	if diff := cmp.Diff(want, aside); diff != "" {
		t.Error(diff)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "the table tab_oda_sbd_status_history of ") || !strings.HasSuffix(notes[0], "has no column current_status, so no statuses were read there") ||
		!strings.Contains(notes[1], "the table tab_oda_status of ") || !strings.HasSuffix(notes[1], "is none that is known, so nothing was read there") {
		t.Errorf("it says %q", notes)
	}
}
