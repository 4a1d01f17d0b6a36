package app_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda"
	"oda/internal/app"
	"oda/internal/engine/audit"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// verified gives the faults of an archive, each as a line.
func verified(t *testing.T, database string) (faults []string) {
	t.Helper()
	report := audit.NewReport(1000, func(f audit.Fault) { faults = append(faults, fmt.Sprintf("%s: %s: %s", f.Class, f.Place, f.Detail)) })
	must.Do(t, app.Verify(t.Context(), database, report))
	if int(report.Faulty.Load()) != len(faults) {
		t.Errorf("%d faults are told of, and %d counted", len(faults), report.Faulty.Load())
	}
	return faults
}

// wantWhole demands that an archive has no fault.
func wantWhole(t *testing.T, database string) {
	t.Helper()
	if faults := verified(t, database); len(faults) > 0 {
		t.Errorf("the archive has faults:\n%s", strings.Join(faults, "\n"))
	}
}

// damage is something that happens to an archive, and what is found of it. In
// statements, "BLOCK" stands for the rows of the block eb-m51, "SBD" for those of
// the SBDefinition sbd-m51, and "HEAD" for the head of the block.
type damage struct {
	name     string
	sqlite   string
	postgres string // as sqlite, where it is empty; "-": not on PostgreSQL
	find     []string
}

var damages = []damage{
	{
		"the text of a record is edited", `UPDATE records SET text = CAST(replace(CAST(text AS TEXT), 'it snowed', 'it snowet') AS BLOB) WHERE BLOCK`,
		`UPDATE records SET text = convert_to(replace(convert_from(text, 'UTF8'), 'it snowed', 'it snowet'), 'UTF8') WHERE BLOCK`,
		[]string{"text: ExecutionBlock eb-m51, record 12: "},
	},
	{
		"the text of an old version is edited", `UPDATE versions SET text = CAST(replace(CAST(text AS TEXT), 'M51', 'M52') AS BLOB) WHERE SBD AND version = 2`,
		`UPDATE versions SET text = convert_to(replace(convert_from(text, 'UTF8'), 'M51', 'M52'), 'UTF8') WHERE SBD AND version = 2`,
		[]string{"text: SBDefinition sbd-m51, version 2: "},
	},
	{"a record is deleted", `DELETE FROM records WHERE BLOCK AND sequence = 3`, "", []string{"gap: ExecutionBlock eb-m51: record 3 is missing"}},
	{"several records are deleted", `DELETE FROM records WHERE BLOCK AND sequence BETWEEN 4 AND 6`, "", []string{"gap: ExecutionBlock eb-m51: records 4 to 6 are missing"}},
	{
		"the last record is deleted", `DELETE FROM records WHERE BLOCK AND sequence = (SELECT max(sequence) FROM records WHERE BLOCK)`, "",
		[]string{"gap: ExecutionBlock eb-m51: record 13 is missing"},
	},
	{"an old version is deleted", `DELETE FROM versions WHERE BLOCK AND version = 2`, "", []string{"gap: ExecutionBlock eb-m51: version 2 is missing"}},
	{"the current version is deleted", `DELETE FROM versions WHERE SBD AND version = 6`, "", []string{"gap: SBDefinition sbd-m51: version 6 is missing"}},
	{"the first version is deleted", `DELETE FROM versions WHERE SBD AND version = 1`, "", []string{"gap: SBDefinition sbd-m51: version 1 is missing"}},
	{"a head is deleted", `DELETE FROM heads WHERE identifier = 'eb-m51'`, "", []string{"orphan: ", "4 versions, 13 records and 4 statuses"}},
	{
		"two records are exchanged", `UPDATE records SET sequence = -sequence WHERE BLOCK AND sequence IN (2, 3);
		UPDATE records SET sequence = 5 + sequence WHERE BLOCK AND sequence < 0`, "",
		[]string{"row: ExecutionBlock eb-m51, record 2: ", "row: ExecutionBlock eb-m51, record 3: "},
	},
	{
		"the texts of two records are exchanged, with their digests", `CREATE TABLE other AS SELECT text, digest FROM records WHERE BLOCK AND sequence = 2;
		UPDATE records SET (text, digest) = (SELECT r.text, r.digest FROM records r WHERE r.BLOCK AND r.sequence = 3) WHERE BLOCK AND sequence = 2;
		UPDATE records SET (text, digest) = (SELECT text, digest FROM other) WHERE BLOCK AND sequence = 3; DROP TABLE other`, "",
		[]string{"row: ExecutionBlock eb-m51, record 2: ", "row: ExecutionBlock eb-m51, record 3: "},
	},
	{"a record says another version", `UPDATE records SET version = 99 WHERE BLOCK AND sequence = 13`, "", []string{"row: ExecutionBlock eb-m51, record 13: "}},
	{"a record has another number", `UPDATE records SET sequence = -5 WHERE BLOCK AND sequence = 13`, "", []string{"row: ExecutionBlock eb-m51, record -5: "}},
	{
		"two versions are exchanged", `UPDATE versions SET version = -version WHERE SBD AND version IN (2, 3); UPDATE versions SET version = 5 + version WHERE SBD AND version < 0`, "",
		[]string{"row: SBDefinition sbd-m51, version 2: ", "row: SBDefinition sbd-m51, version 3: "},
	},
	{
		"two records exchange their positions", `UPDATE records SET position = -position WHERE BLOCK AND sequence IN (2, 3);
		UPDATE records SET position = (SELECT -position FROM records WHERE BLOCK AND sequence = 3) WHERE BLOCK AND sequence = 2;
		UPDATE records SET position = (SELECT max(position) - 1 FROM records r WHERE r.BLOCK AND sequence < 4) WHERE BLOCK AND sequence = 3`, "-",
		[]string{"row: ExecutionBlock eb-m51, record 2: ", "log: ExecutionBlock eb-m51, record 3: has the position "},
	},
	{"who recorded is edited", `UPDATE records SET recorded_by = 'somebody' WHERE BLOCK AND sequence = 4`, "", []string{"row: ExecutionBlock eb-m51, record 4: "}},
	{
		"when it was recorded is edited", `UPDATE records SET recorded_on = recorded_on - 60000000 WHERE BLOCK AND sequence = 4`, "",
		[]string{"row: ExecutionBlock eb-m51, record 4: ", "log: ExecutionBlock eb-m51, record 4: was recorded at "},
	},
	{"a key is edited", `UPDATE records SET key = 'another' WHERE BLOCK AND sequence = 4`, "", []string{"row: ExecutionBlock eb-m51, record 4: "}},
	{
		"the digest of a record is edited", `UPDATE records SET digest = CAST('nothing that fits' AS BLOB) WHERE BLOCK AND sequence = 4`,
		`UPDATE records SET digest = 'nothing that fits' WHERE BLOCK AND sequence = 4`,
		[]string{"text: ExecutionBlock eb-m51, record 4: "},
	},
	{"when it was stored is edited", `UPDATE versions SET stored_on = stored_on + 1 WHERE SBD AND version = 3`, "", []string{"row: SBDefinition sbd-m51, version 3: "}},
	{
		"it was stored at the end of time", `UPDATE versions SET stored_on = 9223372036854775807 WHERE SBD AND version = 3`, "",
		[]string{"row: SBDefinition sbd-m51, version 3: "},
	},
	{"the last record of a version is edited", `UPDATE versions SET sequence_after = sequence_after + 1 WHERE BLOCK AND version = 2`, "", []string{"row: ExecutionBlock eb-m51, version 2: "}},
	{"more records than there can be", `UPDATE versions SET sequence_after = 1 << 62 WHERE BLOCK AND version = 2`, `UPDATE versions SET sequence_after = 1::bigint << 62 WHERE BLOCK AND version = 2`, []string{"row: ExecutionBlock eb-m51, version 2: "}},
	{"the records before a version are edited", `UPDATE versions SET sequence_before = sequence_before + 1 WHERE BLOCK AND version = 2`, "", []string{"row: ExecutionBlock eb-m51, version 2: "}},
	{
		"a version is another's, with its digest", `UPDATE versions SET (text, slots, digest) = (SELECT text, slots, digest FROM versions WHERE SBD AND version = 1) WHERE SBD AND version = 3`, "",
		[]string{"row: SBDefinition sbd-m51, version 3: "},
	},
	{"a seal is edited", `UPDATE versions SET seal = CAST('unsealed' AS BLOB) WHERE SBD AND version = 3`, `UPDATE versions SET seal = 'unsealed' WHERE SBD AND version = 3`, []string{"row: SBDefinition sbd-m51, version 3: "}},
	{"who stored is edited", `UPDATE versions SET stored_by = 'somebody' WHERE SBD AND version = 3`, "", []string{"row: SBDefinition sbd-m51, version 3: "}},
	{
		"the records of a version are edited", `UPDATE versions SET runs = x'0103' WHERE BLOCK AND version = 2`, `UPDATE versions SET runs = '{1,4}' WHERE BLOCK AND version = 2`,
		[]string{"row: ExecutionBlock eb-m51, version 2: "},
	},
	{
		"a version holds records that never were", `UPDATE versions SET runs = x'0163' WHERE BLOCK AND version = 2`, `UPDATE versions SET runs = '{1,100}' WHERE BLOCK AND version = 2`,
		[]string{"log: ExecutionBlock eb-m51, version 2: holds the records 1 to 100"},
	},
	{
		"slots lead beyond the text", `UPDATE versions SET slots = x'01ffff03' WHERE SBD AND version = 3`, `UPDATE versions SET slots = '{1,1000000}' WHERE SBD AND version = 3`,
		[]string{"row: SBDefinition sbd-m51, version 3: "},
	},
	{
		"slots are moved", `UPDATE versions SET slots = x'010102010301040105010601' WHERE SBD AND version = 3`, `UPDATE versions SET slots = '{1,1,2,2}' WHERE SBD AND version = 3`,
		[]string{"row: SBDefinition sbd-m51, version 3: ", "document: SBDefinition sbd-m51, version 3: is not a JSON object"},
	},
	{
		"who created it, and when, is edited", `UPDATE heads SET created_by = 'somebody', created_on = created_on - 1 WHERE identifier = 'sbd-m51'`,
		`UPDATE heads SET created_by = 'somebody', created_on = created_on - 1 WHERE identifier = 'sbd-m51';
		UPDATE creations SET created_by = 'somebody', created_on = created_on - 1 WHERE identifier = 'sbd-m51';
		UPDATE catalogue SET created_on = created_on - 1 WHERE identifier = 'sbd-m51'`,
		[]string{`head: SBDefinition sbd-m51: its head says that "somebody" created it`},
	},
	{"the head leads nowhere", `UPDATE heads SET position = 0 WHERE HEAD`, "-", []string{"head: ExecutionBlock eb-m51: its head leads to position 0, but version 4 is at "}},
	{"the last round has half a gap", "", `UPDATE rounds SET gaps = '{1}' WHERE after = (SELECT max(after) FROM rounds)`, []string{"log: the log: the round up to position "}},
	{"the last round has a gap without its transaction", "", `UPDATE rounds SET gaps = '{1,1}' WHERE after = (SELECT max(after) FROM rounds)`, []string{"log: the log: the round up to position "}},
	{
		"the last round has a gap that is none", "", `UPDATE rounds SET gaps = '{1,2}', since = '{1}' WHERE after = (SELECT max(after) FROM rounds)`,
		[]string{"log: the log: the round up to position ", " has a gap for number 1, which is in a round"},
	},
	{
		"gaps are in the wrong order", "", `UPDATE rounds SET gaps = '{3,3,1,2}', since = '{1,1}' WHERE after = (SELECT max(after) FROM rounds)`,
		[]string{"has gaps that cannot be: 4 ends"},
	},
	{"a head is set back to an earlier version", `UPDATE heads SET version = 3 WHERE HEAD`, "", []string{"head: ExecutionBlock eb-m51: its head says version 3, but version 4 is there"}},
	{"a head forgets records", `UPDATE heads SET last_sequence = last_sequence - 2 WHERE HEAD`, "", []string{"head: ExecutionBlock eb-m51: its head says that the last record is 11, but record 13 is there"}},
	{"a head counts records that are not there", `UPDATE heads SET last_sequence = last_sequence + 2 WHERE HEAD`, "", []string{"gap: ExecutionBlock eb-m51: records 14 to 15 are missing"}},
	{
		"a head says another time", `UPDATE heads SET last_modified_on = last_modified_on - 1 WHERE HEAD`, `UPDATE heads SET last_modified_on = last_modified_on - 1, listed_on = listed_on - 1 WHERE HEAD`,
		[]string{"head: ExecutionBlock eb-m51: its head says that "},
	},
	{"a head says another user", `UPDATE heads SET last_modified_by = 'somebody' WHERE HEAD`, "", []string{"head: ExecutionBlock eb-m51: its head says that \"somebody\" modified it last"}},
	{"a head says that it is older than all archives", `UPDATE heads SET created_on = -1 << 60 WHERE HEAD`, `UPDATE heads SET created_on = -1::bigint << 60 WHERE HEAD`, []string{"head: ExecutionBlock eb-m51: its head says that "}},
	{"a head has an identifier that cannot be", `UPDATE heads SET identifier = 'a"b' WHERE HEAD`, "-", []string{`document: ExecutionBlock a"b, version 1: `}},
	{"a head is of an unknown kind", `UPDATE heads SET kind = 99 WHERE HEAD`, "-", []string{"eb-m51"}},
	{"a head says another creator", `UPDATE heads SET created_by = 'somebody' WHERE HEAD`, "", []string{"head: ExecutionBlock eb-m51: its head says that \"somebody\" created it"}},
	{
		"a head says no creator", `UPDATE heads SET created_by = '' WHERE HEAD`,
		`UPDATE heads SET created_by = '' WHERE HEAD; UPDATE creations SET created_by = '' WHERE BLOCK`,
		[]string{`head: ExecutionBlock eb-m51: its head says that "" created it`},
	},
	{
		"a head leads to an older body", `UPDATE heads SET position = (SELECT position FROM versions WHERE BLOCK AND version = 3) WHERE HEAD`, "-",
		[]string{"head: ExecutionBlock eb-m51: its head leads to position "},
	},
	{"a head says another telescope", `UPDATE heads SET telescope = 'ska_low' WHERE HEAD`, "", []string{`head: ExecutionBlock eb-m51: its head says that its telescope is "ska_low"`}},
	{
		"two heads exchange their identifiers", `UPDATE heads SET identifier = 'other' WHERE identifier = 'sbd-m51'; UPDATE heads SET identifier = 'sbd-m51' WHERE identifier = 'sbd-m101';
		UPDATE heads SET identifier = 'sbd-m101' WHERE identifier = 'other'`, "-",
		[]string{"document: SBDefinition sbd-m51, version 1: is the document of SBDefinition sbd-m101"},
	},
	{"a position is skipped", `UPDATE records SET position = position + 100000 WHERE BLOCK AND sequence = 13`, "-", []string{"gap: the log: the positions "}},
	{
		"a row of the log is deleted", "", `DELETE FROM changes WHERE number = (SELECT max(number) FROM changes)`,
		[]string{"is missing in the log of changes", "log: the log: in the round behind position "},
	},
	{
		"a row of the log is there twice", "", `INSERT INTO changes SELECT number + 1000000, width, names, places, seal FROM changes ORDER BY number DESC LIMIT 1`,
		[]string{"in the log of changes twice, or not in the archive", "row: the log: number "},
	},
	{
		"the last round is lost", "", `DELETE FROM rounds WHERE after = (SELECT max(after) FROM rounds)`,
		[]string{"log: the log: should end at position ", ", but the last round ends at "},
	},
	{"it is not said where the log ends", "", `DELETE FROM log_end`, []string{"log: the log: should end at position -1, but the last round ends at "}},
	{"a round begins later", "", `UPDATE rounds SET after = after + 1`, []string{"log: the log: a round begins behind position 1, but the one before it ends at 0"}},
	{"a round has other numbers", "", `UPDATE rounds SET runs = runs || '{1000000,1000000}' WHERE after = 0`, []string{"row: the log: the round behind position 0 was edited"}},
	{
		"two entities exchange their numbers", "", `UPDATE changes SET number = -number WHERE places[1] = 1 AND places[2] = 1 AND names[1] IN ('sbd-lmc', 'sbd-itself');
		UPDATE changes c SET number = -o.number FROM changes o WHERE c.number < 0 AND o.number < 0 AND o.number <> c.number`,
		[]string{"row: the log: number ", "was edited, or has changed places with another"},
	},
	{
		"a version and a record exchange their numbers", "", `UPDATE changes SET number = -number WHERE number IN
			((SELECT min(number) FROM changes WHERE places[1] = 1), (SELECT max(number) FROM changes WHERE places[1] = 0));
		UPDATE changes c SET number = -o.number FROM changes o WHERE c.number < 0 AND o.number < 0 AND o.number <> c.number`,
		[]string{"row: the log: number ", "was edited, or has changed places with another"},
	},
	{
		"a change overtakes another", "", `UPDATE changes SET number = number + 1000000 WHERE CHANGED AND 2 = ANY (places[1:2] || places[1:1][2:2]);
		UPDATE rounds SET last = last - 1 WHERE after = (SELECT max(after) FROM rounds)`,
		[]string{"log: SBDefinition sbd-m51, version 3: comes in the log of changes before what precedes it"},
	},
	{
		"before its first round, a number is none", "", `DELETE FROM rounds; UPDATE changes SET number = -5 WHERE number = 1`,
		[]string{"log: the log: has number -5, which is never given, for 1 positions"},
	},
	{
		"before its first round, a row of the log says another width", "", `DELETE FROM rounds; UPDATE changes SET width = width + 1 WHERE number = (SELECT max(number) FROM changes)`,
		[]string{"row: the log: number "},
	},
	{
		"before its first round, a row of the log says absurd numbers", "", `DELETE FROM rounds; UPDATE changes SET places[3] = 9000000000000000000 WHERE number = (SELECT max(number) FROM changes WHERE array_ndims(places) = 1)`,
		[]string{"row: the log: number "},
	},
	{
		"a row of the log says even more absurd numbers", "", `UPDATE changes SET places[1][3] = -9223372036854775807 WHERE number = (SELECT max(number) FROM changes WHERE array_ndims(places) = 2)`,
		[]string{"row: the log: number "},
	},
	{"a row of the log names somebody else", "", `UPDATE changes SET names[2] = 'somebody' WHERE number = (SELECT max(number) FROM changes WHERE array_ndims(names) = 1)`, []string{"row: the log: number "}},
	{
		"a version came with absurdly many records", "", `UPDATE versions SET sequence_after = 9223372036854775807, sequence_before = -5 WHERE SBD AND version = 2`,
		[]string{"SBDefinition sbd-m51, version 2"},
	},
	{"a count is edited", `UPDATE counts SET n = n + 1 WHERE kind = 4`, `UPDATE counts SET n = n + 1 WHERE kind = 4 AND shard = 0`, []string{"index: the counts: "}},
	{"a summary is lost", `DELETE FROM catalogue WHERE BLOCK`, "", []string{"index: ExecutionBlock eb-m51: searches do not know it"}},
	{"a summary is another's", `UPDATE catalogue SET summary = (SELECT c.summary FROM catalogue c WHERE c.SBD) WHERE BLOCK`, "", []string{"index: ExecutionBlock eb-m51: searches know another summary"}},
	{
		"a term is lost", `DELETE FROM terms WHERE BLOCKROW; INSERT INTO terms (rowid, list) SELECT entity, ' 3web ' FROM heads WHERE HEAD`,
		`UPDATE catalogue SET terms = ts_delete(terms, (SELECT min(l) FROM unnest(tsvector_to_array(terms)) l)) WHERE BLOCK`,
		[]string{"index: ExecutionBlock eb-m51: the index of words and references has other terms"},
	},
	{
		"an entity is lost from the index", `DELETE FROM terms WHERE BLOCKROW`, "-",
		[]string{"index: ExecutionBlock eb-m51: the index of words and references has other terms"},
	},
	{"the segments of the index are lost", `DELETE FROM terms_data WHERE id > 10; DELETE FROM terms_idx`, "-", []string{"of words and references"}},
	{"searches sort by another time", "", `UPDATE catalogue SET created_on = created_on + 1 WHERE BLOCK`, []string{"index: ExecutionBlock eb-m51: searches know another time of creation"}},
	{"a listing lacks an entity", "", `DELETE FROM creations WHERE BLOCK`, []string{"index: ExecutionBlock eb-m51: listings do not know it"}},
	{"a listing has another user", "", `UPDATE creations SET created_by = 'somebody' WHERE BLOCK`, []string{"index: ExecutionBlock eb-m51: listings know another creator"}},
	{"a head knows a day that is not indexed", "", `UPDATE heads SET call_day = 1, calls_to = 4096 WHERE HEAD`, []string{"head: ExecutionBlock eb-m51: its head says that the index of days has a day that is not there"}},
	{"a listing has another time of modification", "", `UPDATE heads SET listed_on = listed_on - 100000 WHERE HEAD`, []string{"index: ExecutionBlock eb-m51: listings by modification have it at another time"}},
	{"a day is lost", `DELETE FROM call_days WHERE BLOCK`, "", []string{"index: ExecutionBlock eb-m51: the index of days does not lead to record 1, a call of 2026-11-12T00:00:00.000000Z"}},
	{"a call that failed is lost", `DELETE FROM failed_calls WHERE HEAD AND sequence = 3`, "", []string{"index: ExecutionBlock eb-m51, record 3: the index of calls that failed does not have it"}},
	{
		"a call counts as failed", `INSERT INTO failed_calls (at, identifier, sequence, request, function, recorded_by) VALUES (1, 'eb-m51', 1, 'r', 'r', 'x')`,
		`INSERT INTO failed_calls (kind, at, identifier, sequence, request, function, recorded_by) VALUES (3, 1, 'eb-m51', 1, 'r', 'r', 'x')`,
		[]string{"index: ExecutionBlock eb-m51, record 1: the index of calls that failed has it, but it is none of them"},
	},
	{"a call has failed in another way", `UPDATE failed_calls SET error = 'Error' WHERE HEAD AND sequence = 3`, "", []string{"index: ExecutionBlock eb-m51, record 3: the index of calls that failed says something else of it"}},
	{"a function has failed that was not called", `UPDATE failed_calls SET function = 'on' WHERE HEAD AND sequence = 3`, "", []string{"index: ExecutionBlock eb-m51, record 3: the index of calls that failed says something else of it"}},
	{"a call that failed is not there", `UPDATE failed_calls SET sequence = 99 WHERE HEAD AND sequence = 3`, "", []string{
		"index: ExecutionBlock eb-m51: the index of calls that failed has record 99, which is not there", "index: ExecutionBlock eb-m51, record 3: the index of calls that failed does not have it",
	}},
	{"a call that failed is of another block", `UPDATE failed_calls SET identifier = 'eb-none' WHERE HEAD AND sequence = 3`, "", []string{"of calls that failed has record 3, which is not there"}},
	{"the hours of an error are lost", `DELETE FROM failed_hours WHERE what = 4`, "-", []string{"index: ExecutionBlock eb-m51, record 3: the hours of calls that failed do not lead to it by its function"}},
	{"a call that lasted long is lost", `DELETE FROM long_calls WHERE HEAD AND sequence = 1`, "", []string{"index: ExecutionBlock eb-m51, record 1: the index of calls that lasted long does not have it"}},
	{
		"a call counts as long", `INSERT INTO long_calls (at, identifier, sequence, received) VALUES (1, 'eb-m51', 4, 1)`,
		`INSERT INTO long_calls (kind, at, identifier, sequence, received) VALUES (3, 1, 'eb-m51', 4, 1)`,
		[]string{"index: ExecutionBlock eb-m51, record 4: the index of calls that lasted long has it, but it is none of them"},
	},
	{"a call has lasted longer", `UPDATE long_calls SET received = received + 1 WHERE HEAD AND sequence = 1`, "", []string{"index: ExecutionBlock eb-m51, record 1: the index of calls that lasted long says something else of it"}},
	{"a call that lasted long is not there", `UPDATE long_calls SET sequence = 0 WHERE HEAD AND sequence = 1`, "", []string{"index: ExecutionBlock eb-m51: the index of calls that lasted long has record 0, which is not there"}},
	{"a status is edited", `UPDATE statuses SET status = 'Failed' WHERE BLOCK AND sequence = 3`, "", []string{"row: ExecutionBlock eb-m51, status 3: "}},
	{"a status is said to be of another time", `UPDATE statuses SET at = at - 1 WHERE BLOCK AND sequence = 4`, "", []string{"row: ExecutionBlock eb-m51, status 4: "}},
	{"a status is deleted", `DELETE FROM statuses WHERE BLOCK AND sequence = 2`, "", []string{"gap: ExecutionBlock eb-m51: status 2 is missing"}},
	{"the last status is deleted", `DELETE FROM statuses WHERE BLOCK AND sequence = 4`, "", []string{"gap: ExecutionBlock eb-m51: status 4 is missing"}},
	{"all statuses are deleted", `DELETE FROM statuses WHERE SBD; DELETE FROM standings WHERE SBD`, "", []string{"the log"}},
	{
		"two statuses are exchanged", `UPDATE statuses SET sequence = -sequence WHERE BLOCK AND sequence IN (2, 3); UPDATE statuses SET sequence = 5 + sequence WHERE BLOCK AND sequence < 0`, "",
		[]string{"row: ExecutionBlock eb-m51, status 2: ", "row: ExecutionBlock eb-m51, status 3: "},
	},
	{
		"a status is no longer the current one", `UPDATE statuses SET current = 0 WHERE BLOCK AND sequence = 3`, `UPDATE statuses SET current = false WHERE BLOCK AND sequence = 3`,
		[]string{"row: ExecutionBlock eb-m51, status 3: ", "log: ExecutionBlock eb-m51, status 3: "},
	},
	{
		"searches know another status", `UPDATE standings SET status = 'Failed', folded = 'failed', class = 4 WHERE BLOCK`, "",
		[]string{`index: ExecutionBlock eb-m51: its current status is kept as "Failed", but is "Observed"`},
	},
	{"searches know another form of a status", `UPDATE standings SET folded = 'failed' WHERE BLOCK`, "", []string{`index: ExecutionBlock eb-m51: of its current status "Observed", another form, class, sequence number or time is kept`}},
	{"searches do not know a status", `DELETE FROM standings WHERE SBD`, "", []string{"index: SBDefinition sbd-m51: searches do not know its status "}},
	{"searches do not know a document's own status", `DELETE FROM standings WHERE identifier = 'sbi-older'`, "", []string{`index: SBInstance sbi-older: searches do not know its status "out_of_time"`}},
	{"a key of creation has no digest", `UPDATE heads SET create_digest = NULL WHERE create_key = 'opened'`, "-", []string{"index: ExecutionBlock "}},
	{
		"a key of creation is edited", `UPDATE heads SET create_key = 'closed' WHERE create_key = 'opened'`, `UPDATE creation_keys SET key = 'closed' WHERE key = 'opened'`,
		[]string{"index: ExecutionBlock ", ": the key with which it was created was edited, or is another's"},
	},
	{
		"a key of creation is another request's", `UPDATE heads SET create_digest = zeroblob(32) WHERE create_key = 'opened'`, `UPDATE creation_keys SET digest = sha256('') WHERE key = 'opened'`,
		[]string{"index: ExecutionBlock ", ": the key with which it was created was edited, or is another's"},
	},
	{"a key of creation leads elsewhere", "", `UPDATE creation_keys SET identifier = 'nobody' WHERE key = 'opened'`, []string{"index: ExecutionBlock "}},
}

// exportable is damage that only "oda verify" finds: an import of what is exported then
// says that a version is missing, and the key of a creation can be used again.
var exportable = []string{"before its first round, a number is none", "a key of creation leads elsewhere"}

// TestEachDamageIsFoundAndNamed damages an archive. What is damaged is found, and is
// exported as it was, or not at all.
func TestEachDamageIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	for engine, damager := range map[string]func(t *testing.T, healthy string) func(damage) (database string){"sqlite": sqliteDamager, "postgres": postgresDamager} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			healthy := healthyArchive(t, engine)
			if faults := verified(t, healthy); len(faults) > 0 {
				t.Fatalf("a healthy archive has faults:\n%s", strings.Join(faults, "\n"))
			}
			whole := must.Get(export(t, healthy, oda.Scope{}))(t)
			hurt := damager(t, healthy)
			for _, d := range damages {
				if engine == "postgres" && d.postgres == "-" || engine == "sqlite" && d.sqlite == "" {
					continue
				}
				database := hurt(d)
				faults := strings.Join(verified(t, database), "\n")
				content, err := export(t, database, oda.Scope{})
				switch {
				case err == nil && !bytes.Equal(content, whole) && !slices.Contains(exportable, d.name):
					t.Errorf("%s: it is exported", d.name)
				case err != nil && !strings.Contains(err.Error(), "from a backup"):
					t.Errorf("%s: an export ends with %v", d.name, err)
				}
				for _, find := range d.find {
					if !strings.Contains(faults, find) {
						t.Errorf("%s: there is no fault\n%s\nbut\n%s", d.name, find, faults)
					}
				}
			}
		})
	}
}

// sqliteDamager damages copies of a file.
func sqliteDamager(t *testing.T, healthy string) func(damage) string {
	content := must.Get(os.ReadFile(strings.TrimPrefix(healthy, "sqlite:")))(t)
	path := filepath.Join(t.TempDir(), "archive.db")
	const entity = "entity = (SELECT entity FROM heads WHERE identifier = '"
	words := strings.NewReplacer("BLOCKROW", "row"+strings.Replace(entity, "entity", "id", 1)+"eb-m51')", "r.BLOCK", "r."+entity+"eb-m51')", "c.SBD", "c."+entity+"sbd-m51')",
		"BLOCK", entity+"eb-m51')", "SBD", entity+"sbd-m51')", "HEAD", "identifier = 'eb-m51'")
	return func(d damage) string {
		must.Do(t, os.WriteFile(path, content, 0o640))
		conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
		if err := errors.Join(sqlitex.ExecuteScript(conn, words.Replace(d.sqlite), nil), conn.Close()); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		return "sqlite:" + path
	}
}

// postgresDamager damages a database that it has brought back to its first state. It
// writes only the rows that differ: there are hundreds of damages.
func postgresDamager(t *testing.T, healthy string) func(damage) string {
	conn := env.Connect(t, healthy)
	env.Exec(t, conn, "CREATE SCHEMA healthy")
	restore := ""
	for _, table := range []string{"heads", "versions", "records", "counts", "creations", "creation_keys", "catalogue", "call_days", "failed_calls", "long_calls", "statuses", "standings", "changes", "rounds", "log_end"} {
		env.Exec(t, conn, "CREATE TABLE healthy."+table+" AS TABLE "+table)
		restore += strings.ReplaceAll(`DELETE FROM TABLE t WHERE t::text NOT IN (SELECT h::text FROM healthy.TABLE h);
			INSERT INTO TABLE SELECT * FROM healthy.TABLE h WHERE h::text NOT IN (SELECT t::text FROM TABLE t);`, "TABLE", table)
	}
	words := strings.NewReplacer("r.BLOCK", "r.kind = 3 AND r.identifier = 'eb-m51'", "c.SBD", "c.kind = 1 AND c.identifier = 'sbd-m51'",
		"CHANGED", "names[1] = 'sbd-m51'", "BLOCK", "kind = 3 AND identifier = 'eb-m51'", "SBD", "kind = 1 AND identifier = 'sbd-m51'", "HEAD", "identifier = 'eb-m51'")
	return func(d damage) string {
		env.Exec(t, conn, restore, words.Replace(cmp.Or(d.postgres, d.sqlite)))
		return healthy
	}
}

// healthyArchive is a sample archive.
func healthyArchive(t *testing.T, engine string) (database string) {
	t.Helper()
	database, _ = env.Sample(t, engine)
	return database
}

// What is missing in the schema, or is not what it was, is named.
func TestWhatWasDroppedFromTheSchemaIsNamed(t *testing.T) {
	t.Parallel()
	database := healthyArchive(t, "postgres")
	conn := env.Connect(t, database)
	for fault, change := range map[string]string{
		"the index catalogue_terms is missing":           "DROP INDEX catalogue_terms",
		"the index versions_pkey is missing":             "ALTER TABLE versions DROP CONSTRAINT versions_pkey",
		"the index standings_class is missing":           "DROP INDEX standings_class",
		"the index records_key is not unique":            "DROP INDEX records_key; CREATE INDEX records_key ON records (identifier, key) WHERE key IS NOT NULL",
		"the function archive_seal_of_record is missing": "DROP FUNCTION archive_seal_of_record",
	} {
		env.Exec(t, conn, change)
		want := "file: the database: " + fault
		if faults := verified(t, database); !slices.Contains(faults, want) {
			t.Errorf("there is no fault %q but\n%s", want, strings.Join(faults, "\n"))
		}
	}
}

// It cannot be exported, but it can be copied to a disk where it can.
func TestAnArchiveOnAReadOnlyDiskIsVerified(t *testing.T) {
	t.Parallel()
	content := must.Get(os.ReadFile(strings.TrimPrefix(healthyArchive(t, "sqlite"), "sqlite:")))(t)
	dir := env.SmallDisk(t, 64<<20)
	path := filepath.Join(dir, "archive.db")
	must.Do(t, os.WriteFile(path, content, 0o640))
	must.Do(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	wantWhole(t, "sqlite:"+path)
	copied := filepath.Join(t.TempDir(), "copied")
	out, err := command(t, "export", "-o", copied+".oda", "--db=sqlite:"+path).CombinedOutput()
	if want := `read-only file system; copy the archive to another disk with "oda backup" and "oda restore", and export the copy`; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("export: %v\n%s", err, out)
	}
	succeeds(t, run(t, "backup", "-o", copied+".backup", "--db=sqlite:"+path))
	succeeds(t, run(t, "restore", copied+".backup", "--db=sqlite:"+copied+".db"))
	succeeds(t, run(t, "export", "-o", copied+".oda", "--db=sqlite:"+copied+".db"))
}

// A byte that changes in the file itself is found wherever it stands: in a text,
// in another column, in an index, in a page's own structure.
func TestABitThatFlipsInTheFileIsFound(t *testing.T) {
	t.Parallel()
	healthy := healthyArchive(t, "sqlite")
	content := must.Get(os.ReadFile(strings.TrimPrefix(healthy, "sqlite:")))(t)
	for text, want := range map[string]string{
		"it snowed":                      "text: ExecutionBlock eb-m51, record 12: ",
		"Large Magellanic Cloud":         "text: SBDefinition sbd-lmc, version 1: ",
		"functions.release_resources":    "text: ExecutionBlock ",
		"The Whirlpool galaxy, and its ": "text: SBDefinition sbd-m51, version ",
	} {
		// It may also be in an index, or in a place that is no longer used.
		found := false
		for at := range content {
			if !bytes.HasPrefix(content[at:], []byte(text)) {
				continue
			}
			flipped := bytes.Clone(content)
			flipped[at+3] ^= 1
			path := filepath.Join(t.TempDir(), "archive.db")
			must.Do(t, os.WriteFile(path, flipped, 0o640))
			found = found || strings.Contains(strings.Join(verified(t, "sqlite:"+path), "\n"), want)
		}
		if !found {
			t.Errorf("%q was edited wherever it stands in the file, and there is no fault %s", text, want)
		}
	}
}

// FTS5 finds a term through a table that it does not need to read all terms. If that is
// damaged, searches find nothing.
func TestATermThatCannotBeSearchedForIsFound(t *testing.T) {
	t.Parallel()
	database := emptyDatabase(t, "sqlite")
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	for i := range 8 {
		var words []string
		for n := range 400 { // more than fit on a page of the index
			words = append(words, fmt.Sprintf("w%dx%d", i, n*n))
		}
		a.Must("PUT", fmt.Sprintf("/sbds/sbd-%d", i), fmt.Sprintf(`{"name":%q}`, strings.Join(words, " ")))
	}
	must.Do(t, a.Stop())
	wantWhole(t, database)
	conn := must.Get(sqlite.OpenConn(strings.TrimPrefix(database, "sqlite:"), sqlite.OpenReadWrite))(t)
	must.Do(t, errors.Join(sqlitex.ExecuteScript(conn, "DELETE FROM terms_idx WHERE pgno > 2", nil), conn.Close()))
	const want = "a search for one of its words or references does not find it"
	if faults := strings.Join(verified(t, database), "\n"); !strings.Contains(faults, want) {
		t.Errorf("there is no fault %q but\n%s", want, faults)
	}
}
