package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheStatementsAreThoseOfTheArchive(t *testing.T) {
	for source, statements := range map[string][]string{
		"sqlite/conn.go": {rawPragmas},
		"sqlite/read.go": {rawSelectCurrent},
		"sqlite/txn.go":  {rawSelectHead, rawInsertHead, rawUpdateHead, rawUpdateState},
		"sqlite/put.go":  {rawInsertVersion, rawInsertRecord},

		"postgres/read.go": {selectCurrent},
		// The scripts of pgbench have values where these have parameters.
		"postgres/put.go": {
			"SET version = h.version + 1, last_modified_by = $3, last_modified_on = greatest($4, h.last_modified_on + 1), listed_on = greatest($4, h.last_modified_on + 1)",
			"INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text)",
			"INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on,",
		},
		"postgres/open.go": {`"plan_cache_mode": "force_generic_plan"`, `"enable_seqscan": "off"`, `"jit": "off"`},
	} {
		text, err := os.ReadFile(filepath.Join("../../internal", source))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			if !strings.Contains(oneLine(string(text)), oneLine(statement)) {
				t.Errorf("internal/%s no longer has: %s", source, statement)
			}
		}
	}
}

func TestTheSummaryOfPgbenchIsUnderstood(t *testing.T) {
	sample, err := parseSummary(`transaction type: script.sql
number of transactions actually processed: 5000
number of failed transactions: 2 (0.040%)
latency average = 1.000 ms
initial connection time = 12.000 ms
tps = 2500.000000 (without initial connection time)
`)
	if err != nil || sample.Operations != 5000 || sample.Failed != 2 || sample.Elapsed.Seconds() != 2 {
		t.Errorf("got %+v, %v", sample, err)
	}
	if _, err := parseSummary("pgbench: fatal"); err == nil {
		t.Error("a run that did nothing passes for a measurement")
	}
}
